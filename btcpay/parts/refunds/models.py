"""The database tables of refunds and of the outputs paid to their addresses."""

from peewee import BigIntegerField, TextField

from btcpay.values.statuses import RefundStatus
from storage.models import Table, word_field


class Refund(Table):
    seq = BigIntegerField()
    id = TextField()
    merchant_id = BigIntegerField()
    invoice_id = TextField(null=True)
    store_id = TextField(null=True)
    status = word_field(RefundStatus)
    amount_sats = BigIntegerField()
    basis = TextField(null=True)
    asked_amount = TextField(null=True)
    asked_currency = TextField(null=True)
    reason = TextField(null=True)
    shop_texts = TextField(null=True)
    address = TextField(null=True)
    script = TextField(null=True)
    above_height = BigIntegerField(null=True)
    tx_hash = TextField(null=True)
    vout = BigIntegerField(null=True)
    sent_height = BigIntegerField(null=True)
    sent_ms = BigIntegerField(null=True)
    sent_sats = BigIntegerField(null=True)
    currency = TextField(null=True)
    value_at_sending = TextField(null=True)
    usd_at_sending = TextField(null=True)
    named_txid = TextField(null=True)
    named_vout = BigIntegerField(null=True)
    created_ms = BigIntegerField()


class RefundTransaction(Table):
    txid = TextField()
    block_height = BigIntegerField()
    document = TextField()
    prices = TextField()


class RefundOutput(Table):
    txid = TextField()
    vout = BigIntegerField()
    script = TextField()
    amount_sats = BigIntegerField()
    block_height = BigIntegerField()
    block_time_ms = BigIntegerField()
    position = BigIntegerField()
    again_of = TextField(null=True)
