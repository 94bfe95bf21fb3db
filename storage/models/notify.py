"""What happened as others learn of it, who is notified, and what is on its way to them."""

from peewee import BigIntegerField, CompositeKey, Model, TextField


class PublicEvent(Model):
    """Something that happened, as others are notified of it."""

    seq = BigIntegerField(primary_key=True)
    number = BigIntegerField(null=True)
    id = TextField()
    merchant_id = BigIntegerField()
    invoice_id = TextField(null=True)
    payment_link_id = TextField(null=True)
    kind = TextField()
    state = TextField(null=True)
    happened_at = BigIntegerField()

    class Meta:
        table_name = "public_event"


class Receiver(Model):
    """Who is notified, by which transport, of which kinds, and with which secret."""

    id = TextField(primary_key=True)
    merchant_id = BigIntegerField()
    transport = TextField()
    url = TextField(null=True)
    command = TextField(null=True)
    kinds = TextField(null=True)
    secret = TextField(null=True)
    old_secret = TextField(null=True)
    old_until_at = BigIntegerField(null=True)
    created_at = BigIntegerField()
    failing_since = BigIntegerField(null=True)
    failed_at = BigIntegerField(null=True)
    disabled_at = BigIntegerField(null=True)
    disabled_reason = TextField(null=True)


class Delivery(Model):
    """A message on its way to a receiver, or how it went."""

    receiver_id = TextField()
    about = TextField()
    event_seq = BigIntegerField(null=True)
    created_at = BigIntegerField()
    attempts = BigIntegerField()
    first_at = BigIntegerField(null=True)
    next_at = BigIntegerField(null=True)
    tried_at = BigIntegerField(null=True)
    delivered_at = BigIntegerField(null=True)
    status = BigIntegerField(null=True)
    answer = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("receiver_id", "about")


class MerchantMail(Model):
    """Where a merchant wants mail, whether customers get receipts, and in which language."""

    merchant_id = BigIntegerField(primary_key=True)
    address = TextField(null=True)
    receipts = BigIntegerField()
    language = TextField()

    class Meta:
        table_name = "merchant_mail"
