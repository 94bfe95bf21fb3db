"""The models of outputs, payments, proofs, balances, history and attention."""

from peewee import BigIntegerField, TextField

from storage.models.shop import Table


class Payment(Table):
    seq = BigIntegerField()
    id = TextField()
    merchant_id = BigIntegerField()
    address_invoice_id = TextField()
    invoice_id = TextField(null=True)
    amount_sats = BigIntegerField()
    amount_usd_at_receipt = TextField(null=True)
    tx_hash = TextField()
    created_ms = BigIntegerField()
    currency = TextField()
    value_at_receipt = TextField(null=True)

    # The columns that API clients see.
    PUBLIC = (id, invoice_id, amount_sats, amount_usd_at_receipt, tx_hash, created_ms)


class Output(Table):
    txid = TextField()
    vout = BigIntegerField()
    invoice_id = TextField()
    merchant_id = BigIntegerField()
    amount_sats = BigIntegerField()
    coinbase = BigIntegerField()
    first_seen_ms = BigIntegerField()
    seen_waiting = BigIntegerField()
    feerate = BigIntegerField(null=True)
    inputs = TextField(null=True)
    vanished_ms = BigIntegerField(null=True)
    replaced_height = BigIntegerField(null=True)
    block_height = BigIntegerField(null=True)
    block_hash = TextField(null=True)
    block_time_ms = BigIntegerField(null=True)
    position = BigIntegerField(null=True)
    spent_height = BigIntegerField(null=True)
    payment_id = TextField(null=True)


class Proof(Table):
    invoice_id = TextField()
    txid = TextField()
    document = TextField()


class Balance(Table):
    merchant_id = BigIntegerField()
    confirmed_sats = BigIntegerField()
    total_sats = BigIntegerField()
    settled_sats = BigIntegerField()


class MerchantDay(Table):
    merchant_id = BigIntegerField()
    currency = TextField()
    day = BigIntegerField()
    payments = BigIntegerField()
    unpriced = BigIntegerField()
    received_sats = BigIntegerField()
    value_minor = BigIntegerField()


class Event(Table):
    seq = BigIntegerField()
    invoice_id = TextField()
    happened_ms = BigIntegerField()
    kind = TextField()
    detail = TextField()


class Attention(Table):
    invoice_id = TextField()
    merchant_id = BigIntegerField()
    reason = TextField()
    since_ms = BigIntegerField()
    stake_minor = BigIntegerField()
