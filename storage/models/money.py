"""What was seen at the addresses, what counts, and what happened."""

from peewee import BigIntegerField, CompositeKey, Model, TextField


class Payment(Model):
    """What one transaction confirmed to the address of one invoice."""

    seq = BigIntegerField(primary_key=True)
    id = TextField()
    merchant_id = BigIntegerField()
    address_invoice_id = TextField()
    invoice_id = TextField(null=True)
    amount_sats = BigIntegerField()
    amount_usd_at_receipt = TextField(null=True)
    tx_hash = TextField()
    created_at = BigIntegerField()
    currency = TextField(null=True)
    amount_at_receipt = TextField(null=True)


class Output(Model):
    """A transaction output that pays one of our addresses."""

    txid = TextField()
    vout = BigIntegerField()
    invoice_id = TextField()
    merchant_id = BigIntegerField()
    amount_sats = BigIntegerField()
    coinbase = BigIntegerField()
    first_seen_at = BigIntegerField()
    seen_waiting = BigIntegerField()
    inputs = TextField(null=True)
    vanished_at = BigIntegerField(null=True)
    replaced_height = BigIntegerField(null=True)
    block_height = BigIntegerField(null=True)
    block_hash = TextField(null=True)
    block_time_at = BigIntegerField(null=True)
    position = BigIntegerField(null=True)
    spent_height = BigIntegerField(null=True)
    payment_id = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("invoice_id", "txid", "vout")


class Proof(Model):
    """What proves that a transaction paid the address of an invoice."""

    invoice_id = TextField()
    txid = TextField()
    document = TextField()

    class Meta:
        primary_key = CompositeKey("invoice_id", "txid")


class Balance(Model):
    """What a merchant has, as totals."""

    merchant_id = BigIntegerField(primary_key=True)
    confirmed_sats = BigIntegerField()
    total_sats = BigIntegerField()
    settled_sats = BigIntegerField()


class MerchantDay(Model):
    """What a merchant received on one day."""

    merchant_id = BigIntegerField()
    day = BigIntegerField()
    payments = BigIntegerField()
    unpriced = BigIntegerField()
    received_sats = BigIntegerField()
    usd_cents = BigIntegerField()

    class Meta:
        table_name = "merchant_day"
        primary_key = CompositeKey("merchant_id", "day")


class Event(Model):
    """Something that happened to an invoice."""

    seq = BigIntegerField(primary_key=True)
    invoice_id = TextField()
    happened_at = BigIntegerField()
    kind = TextField()
    detail = TextField()


class Attention(Model):
    """An invoice that wants a human, and why."""

    invoice_id = TextField(primary_key=True)
    merchant_id = BigIntegerField()
    reason = TextField()
    since_at = BigIntegerField()
