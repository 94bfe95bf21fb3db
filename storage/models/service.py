"""The models of the service's own state: blocks, sources, events and deliveries."""

from peewee import BigIntegerField, BlobField, TextField

from storage.models.shop import Table


class Fact(Table):
    name = TextField()
    value = TextField()

    class Meta:
        table_name = "meta"


class Block(Table):
    height = BigIntegerField()
    hash = TextField()
    header = BlobField()
    mined_ms = BigIntegerField()
    read_ms = BigIntegerField(null=True)
    spends = BlobField(null=True)
    not_before = BigIntegerField(null=True)


class PartWork(Table):
    part = TextField()
    kind = TextField()
    height = BigIntegerField()
    invoice_id = TextField()
    failures = BigIntegerField()
    next_ms = BigIntegerField()
    reason = TextField()


class Explorer(Table):
    root = TextField()
    refusals = BigIntegerField()
    rests_until_ms = BigIntegerField()


class ExplorerWithoutMempool(Table):
    root = TextField()
    until_ms = BigIntegerField()


class ExplorerUse(Table):
    root = TextField()
    minute_ms = BigIntegerField()
    calls = BigIntegerField()


class Peer(Table):
    place = TextField()
    good_ms = BigIntegerField(null=True)
    height = BigIntegerField(null=True)
    left_until = BigIntegerField(null=True)


class IdempotencyKey(Table):
    merchant_id = BigIntegerField()
    operation = TextField()
    idempotency_key = TextField()
    body_sha256 = TextField()
    owner = TextField()
    locked_ms = BigIntegerField()
    created_ms = BigIntegerField()
    response = TextField(null=True)
    resource_id = TextField(null=True)


class Tally(Table):
    name = TextField()
    label = TextField()
    total = BigIntegerField()


class PublicEvent(Table):
    seq = BigIntegerField()
    number = BigIntegerField(null=True)
    id = TextField()
    merchant_id = BigIntegerField()
    invoice_id = TextField(null=True)
    payment_link_id = TextField(null=True)
    resource_id = TextField(null=True)
    kind = TextField()
    state = TextField(null=True)
    happened_ms = BigIntegerField()


class Receiver(Table):
    id = TextField()
    merchant_id = BigIntegerField()
    transport = TextField()
    url = TextField(null=True)
    command = TextField(null=True)
    kinds = TextField(null=True)
    secret = TextField(null=True)
    old_secret = TextField(null=True)
    old_until_ms = BigIntegerField(null=True)
    store_id = TextField(null=True)
    created_ms = BigIntegerField()
    failing_since = BigIntegerField(null=True)
    failed_ms = BigIntegerField(null=True)
    disabled_ms = BigIntegerField(null=True)
    disabled_reason = TextField(null=True)


class Delivery(Table):
    receiver_id = TextField()
    about = TextField()
    event_seq = BigIntegerField(null=True)
    created_ms = BigIntegerField()
    attempts = BigIntegerField()
    first_ms = BigIntegerField(null=True)
    next_ms = BigIntegerField(null=True)
    tried_ms = BigIntegerField(null=True)
    delivered_ms = BigIntegerField(null=True)
    status = BigIntegerField(null=True)
    answer = TextField(null=True)
    line = TextField(null=True)
    held_until = BigIntegerField(null=True)
    doubted_ms = BigIntegerField(null=True)


class MerchantMail(Table):
    merchant_id = BigIntegerField()
    address = TextField(null=True)
    receipts = BigIntegerField()
    language = TextField()
    evening = BigIntegerField()


class StoredMailServer(Table):
    id = BigIntegerField()
    host = TextField()
    port = BigIntegerField()
    is_tls = BigIntegerField()
    user_name = TextField()
    password = TextField()
    sender_name = TextField()
    sender_address = TextField()

    class Meta:
        table_name = "mail_server"
