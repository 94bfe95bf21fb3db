"""What processes other than the server counted, and what merchants were paid in all."""

STATEMENTS = (
    # Totals since the database was made, added up at the end of each run: a check is a process of
    # its own, and what it counted would end with it. `label` is the outcome, or a host.
    """CREATE TABLE tally (
        name TEXT NOT NULL,
        label TEXT NOT NULL,
        total BIGINT NOT NULL CHECK (total >= 0),
        PRIMARY KEY (name, label)
    )""",
    # All payments ever, moved since or not; less what a reorganisation has undone.
    "ALTER TABLE balance ADD COLUMN settled_sats BIGINT NOT NULL DEFAULT 0"
    " CHECK (settled_sats >= 0)",
    """UPDATE balance SET settled_sats = (
        SELECT COALESCE(SUM(output.amount_sats), 0) FROM output
        WHERE output.merchant_id = balance.merchant_id AND output.payment_id IS NOT NULL
    )""",
)


def up(migrator, db):
    """Adds the table, and the column with the sums as they are."""
    for statement in STATEMENTS:
        db.execute_sql(statement)
