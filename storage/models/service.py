"""What the service remembers for itself."""

from peewee import BigIntegerField, BlobField, CompositeKey, Model, TextField


class Fact(Model):
    """One fact about the database itself."""

    name = TextField(primary_key=True)
    value = TextField()

    class Meta:
        table_name = "meta"


class Block(Model):
    """A header of the best chain, and whether its block was read."""

    height = BigIntegerField(primary_key=True)
    hash = TextField()
    header = BlobField()
    mined_at = BigIntegerField()
    read_at = BigIntegerField(null=True)
    spends = BlobField(null=True)


class Explorer(Model):
    """An explorer that asked to be left alone, and until when."""

    root = TextField(primary_key=True)
    refusals = BigIntegerField()
    rests_until_at = BigIntegerField()


class ExplorerUse(Model):
    """The calls to an explorer in one minute."""

    root = TextField()
    minute_at = BigIntegerField()
    calls = BigIntegerField()

    class Meta:
        table_name = "explorer_use"
        primary_key = CompositeKey("root", "minute_at")


class IdempotencyKey(Model):
    """A retry's memory: who holds the key, or what was answered."""

    merchant_id = BigIntegerField()
    operation = TextField()
    idempotency_key = TextField()
    body_sha256 = TextField()
    owner = TextField()
    locked_at = BigIntegerField()
    created_at = BigIntegerField()
    response = TextField(null=True)
    resource_id = TextField(null=True)

    class Meta:
        table_name = "idempotency_key"
        primary_key = CompositeKey("merchant_id", "operation", "idempotency_key")


class Tally(Model):
    """A total that outlives the process that counted."""

    name = TextField()
    label = TextField()
    total = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("name", "label")
