"""What others are told, how far each reader has come, and who is told by webhook."""

from peewee import BigIntegerField, CompositeKey, Model, TextField


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


class WebhookEndpoint(Model):
    """Who is told: a URL or a command, of which kinds, and with which secret."""

    id = TextField(primary_key=True)
    merchant_id = BigIntegerField()
    url = TextField(null=True)
    command = TextField(null=True)
    kinds = TextField(null=True)
    secret = TextField(null=True)
    old_secret = TextField(null=True)
    old_until_at = BigIntegerField(null=True)
    since_number = BigIntegerField()
    created_at = BigIntegerField()
    failing_since = BigIntegerField(null=True)
    disabled_at = BigIntegerField(null=True)
    disabled_reason = TextField(null=True)

    class Meta:
        table_name = "webhook_endpoint"


class WebhookDelivery(Model):
    """An event on its way to an endpoint, or how it went."""

    event_seq = BigIntegerField()
    endpoint_id = TextField()
    attempts = BigIntegerField()
    next_at = BigIntegerField(null=True)
    tried_at = BigIntegerField(null=True)
    delivered_at = BigIntegerField(null=True)
    status = BigIntegerField(null=True)
    answer = TextField(null=True)

    class Meta:
        table_name = "webhook_delivery"
        primary_key = CompositeKey("event_seq", "endpoint_id")
