"""Mail that merchants want, and each mail."""

from peewee import BigIntegerField, CompositeKey, Model, TextField


class MerchantMail(Model):
    """Where a merchant wants mail, whether customers get receipts, and in which language."""

    merchant_id = BigIntegerField(primary_key=True)
    address = TextField(null=True)
    receipts = BigIntegerField()
    language = TextField()

    class Meta:
        table_name = "merchant_mail"


class Mail(Model):
    """A mail on its way, or how it went."""

    about = TextField()
    merchant_id = BigIntegerField()
    recipient = TextField()
    event_seq = BigIntegerField(null=True)
    created_at = BigIntegerField()
    attempts = BigIntegerField()
    next_at = BigIntegerField(null=True)
    tried_at = BigIntegerField(null=True)
    sent_at = BigIntegerField(null=True)
    answer = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("about", "merchant_id", "recipient")
