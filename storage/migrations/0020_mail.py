"""Mail: where merchants want it, and each mail that is on its way or went out."""

# `receipts`: whether customers get one, at the address of their invoice; it is stored there alone.
# One row a mail. `about`: an event's id, of a receipt the invoice's (whatever a reorganisation does
# to it, a customer is sent one), or a day without a complete check. It waits for `next_at`; without
# it, it is sent or given up. `answer`: why the last attempt failed.
TABLES = (
    """CREATE TABLE merchant_mail (
        merchant_id BIGINT PRIMARY KEY REFERENCES merchant (id),
        address TEXT,
        receipts BIGINT NOT NULL CHECK (receipts IN (0, 1)),
        language TEXT NOT NULL
    )""",
    """CREATE TABLE mail (
        about TEXT NOT NULL,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        recipient TEXT NOT NULL CHECK (recipient IN ('merchant', 'customer')),
        event_seq BIGINT REFERENCES public_event (seq) ON DELETE CASCADE,
        created_at BIGINT NOT NULL,
        attempts BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),
        next_at BIGINT,
        tried_at BIGINT,
        sent_at BIGINT,
        answer TEXT,
        PRIMARY KEY (about, merchant_id, recipient),
        CHECK (next_at IS NULL OR sent_at IS NULL)
    )""",
    "CREATE INDEX mail_due ON mail (next_at) WHERE next_at IS NOT NULL",
    "CREATE INDEX mail_of_event ON mail (event_seq) WHERE event_seq IS NOT NULL",
    "CREATE INDEX mail_without_event ON mail (created_at) WHERE event_seq IS NULL",
)


def up(migrator, db):
    """Creates the tables; nobody is sent anything."""
    for statement in TABLES:
        db.execute_sql(statement)
