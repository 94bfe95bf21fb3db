"""Looks that were begun and never ended, and an index without what has vanished."""

STATEMENTS = (
    # Counted before a look and taken back at its end, whatever that is: a process that is killed
    # while it looks at one address has failed there, and the address waits longer each time.
    "ALTER TABLE invoice ADD COLUMN begun BIGINT NOT NULL DEFAULT 0 CHECK (begun >= 0)",
    "ALTER TABLE invoice ADD COLUMN begun_at BIGINT",
    # What an explorer invents and takes back stays as history, and nobody who asks where an
    # invoice stands reads it.
    "CREATE INDEX output_alive ON output (invoice_id) WHERE vanished_at IS NULL",
)


def up(migrator, db):
    """Adds columns and index."""
    for statement in STATEMENTS:
        db.execute_sql(statement)
