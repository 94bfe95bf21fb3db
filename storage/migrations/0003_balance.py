"""Balances as totals, so that reading one does not grow with history."""

STATEMENTS = (
    # Changed in the transaction that changes an output, by the difference that it makes.
    # `confirmed_sats` counts as payment and has not moved; `total_sats` adds what is on its way.
    """CREATE TABLE balance (
        merchant_id BIGINT PRIMARY KEY REFERENCES merchant (id),
        confirmed_sats BIGINT NOT NULL CHECK (confirmed_sats >= 0),
        total_sats BIGINT NOT NULL CHECK (total_sats >= confirmed_sats)
    )""",
    """INSERT INTO balance (merchant_id, confirmed_sats, total_sats)
        SELECT merchant.id,
               COALESCE(SUM(CASE WHEN output.payment_id IS NULL THEN 0
                                 ELSE output.amount_sats END), 0),
               COALESCE(SUM(output.amount_sats), 0)
        FROM merchant LEFT JOIN output ON output.merchant_id = merchant.id
             AND output.vanished_at IS NULL AND output.spent_height IS NULL
        GROUP BY merchant.id""",
)


def up(migrator, db):
    """Adds the table with the sums as they are."""
    for statement in STATEMENTS:
        db.execute_sql(statement)
