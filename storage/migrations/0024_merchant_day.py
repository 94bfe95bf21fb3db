"""What each merchant received on each day, so that a sum of days does not read its payments."""

STATEMENTS = (
    # `day` counts days of UTC since 1970. Changed in the transaction that makes a payment or takes
    # it back. Dollars are those at receipt, in whole cents as they were stored; `unpriced` are the
    # payments for which no price was known then, in satoshis they count.
    """CREATE TABLE merchant_day (
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        day BIGINT NOT NULL,
        payments BIGINT NOT NULL CHECK (payments >= 0),
        unpriced BIGINT NOT NULL CHECK (unpriced BETWEEN 0 AND payments),
        received_sats BIGINT NOT NULL CHECK (received_sats >= payments){whole_sats},
        usd_cents BIGINT NOT NULL CHECK (usd_cents >= 0){whole_cents},
        PRIMARY KEY (merchant_id, day)
    )""",
    # An amount in dollars always has two places: without the point it is cents.
    """INSERT INTO merchant_day (merchant_id, day, payments, unpriced, received_sats, usd_cents)
        SELECT merchant_id, created_at / 86400000, COUNT(*),
            COUNT(*) - COUNT(amount_usd_at_receipt), SUM(amount_sats),
            COALESCE(SUM(CAST(REPLACE(amount_usd_at_receipt, '.', '') AS BIGINT)), 0)
        FROM payment GROUP BY merchant_id, created_at / 86400000""",
)


def up(migrator, db):
    """Adds the table, with the days of all payments that there are."""
    # SQLite keeps any number in any column; a server's columns hold nothing else.
    is_sqlite = type(migrator).__name__ == "SqliteMigrator"
    whole = {
        f"whole_{unit}": f" CHECK (typeof({column}) = 'integer')" if is_sqlite else ""
        for unit, column in (("sats", "received_sats"), ("cents", "usd_cents"))
    }
    for statement in STATEMENTS:
        db.execute_sql(statement.format(**whole))
