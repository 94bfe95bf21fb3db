"""What others are told, and how far each reader has come."""

from peewee import BigIntegerField, Model, TextField


class PublicEvent(Model):
    """Something that happened, as others are told of it."""

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


class EventReader(Model):
    """A reader of events, and the number of the last one that it has taken over."""

    name = TextField(primary_key=True)
    number = BigIntegerField()

    class Meta:
        table_name = "event_reader"
