"""Facts that the service keeps for itself."""

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
    mined_at = BigIntegerField()
    read_at = BigIntegerField(null=True)
    spends = BlobField(null=True)
    not_before = BigIntegerField(null=True)


class Explorer(Table):
    root = TextField()
    refusals = BigIntegerField()
    rests_until_at = BigIntegerField()


class ExplorerUse(Table):
    root = TextField()
    minute_at = BigIntegerField()
    calls = BigIntegerField()


class Peer(Table):
    place = TextField()
    good_at = BigIntegerField(null=True)
    height = BigIntegerField(null=True)
    left_until = BigIntegerField(null=True)


class IdempotencyKey(Table):
    merchant_id = BigIntegerField()
    operation = TextField()
    idempotency_key = TextField()
    body_sha256 = TextField()
    owner = TextField()
    locked_at = BigIntegerField()
    created_at = BigIntegerField()
    response = TextField(null=True)
    resource_id = TextField(null=True)


class Tally(Table):
    name = TextField()
    label = TextField()
    total = BigIntegerField()
