"""Looks that were begun and never ended, and indexes of what counts."""

STATEMENTS = (
    # Counted before a look and taken back at its end, whatever that is: a process that is killed
    # while it looks at one address has failed there, and the address waits longer each time.
    "ALTER TABLE invoice ADD COLUMN begun BIGINT NOT NULL DEFAULT 0 CHECK (begun >= 0)",
    "ALTER TABLE invoice ADD COLUMN begun_at BIGINT",
    # What an explorer invents and takes back stays as history, and nobody who asks where an
    # invoice stands reads it.
    "CREATE INDEX output_alive ON output (invoice_id) WHERE vanished_at IS NULL",
    # A payment that is undone finds its outputs without reading all there are.
    "CREATE INDEX output_of_payment ON output (payment_id) WHERE payment_id IS NOT NULL",
)


def up(migrator, db):
    """Adds columns and indexes."""
    for statement in STATEMENTS:
        db.execute_sql(statement)
