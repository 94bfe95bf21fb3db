"""The peewee models, from which the queries are built; the rules stand in the migrations.

Times are int milliseconds since 1970 UTC, amounts int satoshis, dollars exact decimal text.
"""

from peewee import BigIntegerField, BlobField, CompositeKey, Model, TextField


class Fact(Model):
    """One fact about the database itself."""

    name = TextField(primary_key=True)
    value = TextField()

    class Meta:
        table_name = "meta"


class Merchant(Model):
    """Whose money it is, and the account key that its addresses come from."""

    id = BigIntegerField(primary_key=True)
    name = TextField()
    script_type = TextField()
    xpub = TextField()
    account_key = TextField()
    next_index = BigIntegerField()
    created_at = BigIntegerField()
    probed_at = BigIntegerField(null=True)
    swept_at = BigIntegerField(null=True)
    unspent_at = BigIntegerField(null=True)
    wallet_gap_limit = BigIntegerField()


class Brand(Model):
    """How a merchant's pages look."""

    merchant_id = BigIntegerField(primary_key=True)
    name = TextField(null=True)
    accent = TextField(null=True)
    logo = BlobField(null=True)
    logo_type = TextField(null=True)
    logo_sha256 = TextField(null=True)


class ApiKey(Model):
    """A bearer credential, by its SHA-256."""

    id = TextField(primary_key=True)
    merchant_id = BigIntegerField()
    name = TextField()
    scope = TextField()
    secret_sha256 = TextField()
    last_four = TextField()
    created_at = BigIntegerField()
    last_used_at = BigIntegerField(null=True)
    expires_at = BigIntegerField(null=True)
    revoked_at = BigIntegerField(null=True)

    class Meta:
        table_name = "api_key"


class PaymentLink(Model):
    """A reusable checkout page."""

    seq = BigIntegerField(primary_key=True)
    id = TextField()
    merchant_id = BigIntegerField()
    status = TextField()
    title = TextField(null=True)
    description = TextField(null=True)
    amount_mode = TextField()
    amount_usd = TextField(null=True)
    min_amount_usd = TextField(null=True)
    max_amount_usd = TextField(null=True)
    created_at = BigIntegerField()

    class Meta:
        table_name = "payment_link"


class Invoice(Model):
    """A one-time payment request and the address that is its own."""

    seq = BigIntegerField(primary_key=True)
    id = TextField()
    merchant_id = BigIntegerField()
    payment_link_id = TextField(null=True)
    status = TextField()
    amount_sats = BigIntegerField()
    amount_usd_quote = TextField()
    price_usd = TextField()
    description = TextField(null=True)
    customer_email = TextField(null=True)
    deposit_address = TextField()
    address_index = BigIntegerField()
    tx_hash = TextField(null=True)
    expires_at = BigIntegerField(null=True)
    paid_at = BigIntegerField(null=True)
    finished_at = BigIntegerField(null=True)
    settled_reason = TextField(null=True)
    looks = BigIntegerField()
    checked_at = BigIntegerField(null=True)
    asked_at = BigIntegerField(null=True)
    created_at = BigIntegerField()
    doubted_at = BigIntegerField(null=True)
    failures = BigIntegerField()
    failed_at = BigIntegerField(null=True)
    claimed_until = BigIntegerField(null=True)
    begun = BigIntegerField()
    begun_at = BigIntegerField(null=True)
    asked_since = BigIntegerField(null=True)


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


class Output(Model):
    """A transaction output that pays one of our addresses."""

    txid = TextField()
    vout = BigIntegerField()
    invoice_id = TextField()
    merchant_id = BigIntegerField()
    amount_sats = BigIntegerField()
    coinbase = BigIntegerField()
    first_seen_at = BigIntegerField()
    vanished_at = BigIntegerField(null=True)
    block_height = BigIntegerField(null=True)
    block_hash = TextField(null=True)
    block_time_at = BigIntegerField(null=True)
    spent_height = BigIntegerField(null=True)
    proven = BigIntegerField()
    payment_id = TextField(null=True)
    position = BigIntegerField(null=True)
    seen_waiting = BigIntegerField()
    spent_at = BigIntegerField(null=True)

    class Meta:
        primary_key = CompositeKey("invoice_id", "txid", "vout")


class Proof(Model):
    """What convinced the service of a payment."""

    payment_id = TextField(primary_key=True)
    document = TextField()


class Balance(Model):
    """What a merchant has, as totals."""

    merchant_id = BigIntegerField(primary_key=True)
    confirmed_sats = BigIntegerField()
    total_sats = BigIntegerField()
    settled_sats = BigIntegerField()


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
    reason = TextField()
    since_at = BigIntegerField()


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
    swept = BigIntegerField()

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
