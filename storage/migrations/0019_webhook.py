"""Who is told of events, and how each delivery went."""

# `url` or `command`; only what is sent over the network is signed. The secret is kept as it is: it
# must be read to sign. After a rotation the old one signs too, until `old_until_at`.
# `kinds`: a JSON list, null for all. `since_number`: nothing up to that event is told.
# `failing_since` is the first failure after the last success.
TABLES = (
    """CREATE TABLE webhook_endpoint (
        id TEXT PRIMARY KEY,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        url TEXT,
        command TEXT,
        kinds TEXT,
        secret TEXT,
        old_secret TEXT,
        old_until_at BIGINT,
        since_number BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        failing_since BIGINT,
        disabled_at BIGINT,
        disabled_reason TEXT,
        CHECK ((url IS NULL) <> (command IS NULL)),
        CHECK ((url IS NULL) = (secret IS NULL)),
        CHECK ((old_secret IS NULL) = (old_until_at IS NULL)),
        CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
    )""",
    # One row an endpoint and event. It waits for `next_at`; without it is delivered or given up.
    # `status`: the HTTP status, or how the command ended; null when there was no answer.
    """CREATE TABLE webhook_delivery (
        event_seq BIGINT NOT NULL REFERENCES public_event (seq) ON DELETE CASCADE,
        endpoint_id TEXT NOT NULL REFERENCES webhook_endpoint (id) ON DELETE CASCADE,
        attempts BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),
        next_at BIGINT,
        tried_at BIGINT,
        delivered_at BIGINT,
        status BIGINT,
        answer TEXT,
        PRIMARY KEY (event_seq, endpoint_id),
        CHECK (next_at IS NULL OR delivered_at IS NULL)
    )""",
    "CREATE INDEX webhook_delivery_of_endpoint ON webhook_delivery (endpoint_id, event_seq)",
    "CREATE INDEX webhook_delivery_due ON webhook_delivery (endpoint_id, next_at, event_seq)"
    " WHERE next_at IS NOT NULL",
)


def up(migrator, db):
    """Creates the tables."""
    for statement in TABLES:
        db.execute_sql(statement)
