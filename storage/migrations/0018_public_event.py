"""What others are told: events, each with a number that a reader goes on from."""

# `seq` is the order of insertion; a server gives it with gaps, and commits in another order. So
# `number` is given when an event is first read, one after another, and a reader misses none.
# `id` is what receivers know it by. `state` is JSON, what was true when it happened and may have
# changed since; null where the kind alone says it.
TABLES = (
    """CREATE TABLE public_event (
        seq {serial},
        number BIGINT,
        id TEXT NOT NULL,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        invoice_id TEXT REFERENCES invoice (id),
        payment_link_id TEXT REFERENCES payment_link (id),
        kind TEXT NOT NULL,
        state TEXT,
        happened_at BIGINT NOT NULL,
        CHECK ((invoice_id IS NULL) <> (payment_link_id IS NULL))
    )""",
    "CREATE UNIQUE INDEX public_event_number ON public_event (number) WHERE number IS NOT NULL",
    "CREATE INDEX public_event_new ON public_event (seq) WHERE number IS NULL",
    # The number of the last event that each reader has taken over; none later is forgotten.
    """CREATE TABLE event_reader (
        name TEXT PRIMARY KEY,
        number BIGINT NOT NULL CHECK (number >= 0)
    )""",
)


def up(migrator, db):
    """Creates the tables; what happened before is told to nobody."""
    sqlite = type(migrator).__name__ == "SqliteMigrator"
    serial = (
        "INTEGER PRIMARY KEY AUTOINCREMENT"
        if sqlite
        else "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    )
    for statement in TABLES:
        db.execute_sql(statement.format(serial=serial))
