"""What is believed: whole satoshis, what we saw waiting, and what was only said to be spent."""

SATOSHIS = (
    ("invoice", "amount_sats"),
    ("payment", "amount_sats"),
    ("output", "amount_sats"),
    ("balance", "confirmed_sats"),
    ("balance", "total_sats"),
    ("balance", "settled_sats"),
)

STATEMENTS = (
    # Seen in the mempool before any block: that its block seems older than the invoice then says
    # that a clock was wrong, and not that the address was used before. (A text that is another
    # when a part is replaced has that part: both databases say that alike.)
    "ALTER TABLE output ADD COLUMN seen_waiting BIGINT NOT NULL DEFAULT 0"
    " CHECK (seen_waiting IN (0, 1))",
    """UPDATE output SET seen_waiting = 1 WHERE block_height IS NULL OR EXISTS (
        SELECT 1 FROM event WHERE event.invoice_id = output.invoice_id AND event.kind = 'seen'
        AND replace(event.detail, '"block": null', '') <> event.detail
        AND replace(event.detail, '"' || output.txid || '", "vout": ' || output.vout || ',', '')
            <> event.detail
    )""",
    # When an explorer first said that it is spent, and when one of the merchant's was there again.
    "ALTER TABLE output ADD COLUMN spent_at BIGINT",
    "ALTER TABLE merchant ADD COLUMN unspent_at BIGINT",
    """UPDATE output SET spent_at = (
        SELECT checked_at FROM invoice WHERE invoice.id = output.invoice_id
    ) WHERE spent_height IS NOT NULL""",
    "CREATE INDEX output_spent ON output (merchant_id, invoice_id) WHERE spent_height IS NOT NULL",
    # The proof knows the place of a coinbase; until now the explorer's word counted.
    """UPDATE output SET coinbase = CASE WHEN position = 0 THEN 1 ELSE 0 END
        WHERE proven = 1 AND position IS NOT NULL""",
    # More than can exist has been shown: of it only what is proven stays money. The rest is
    # history, until an explorer shows it again.
    """UPDATE output SET vanished_at = first_seen_at, block_height = NULL, block_hash = NULL,
            block_time_at = NULL, spent_height = NULL
        WHERE vanished_at IS NULL AND proven = 0 AND payment_id IS NULL AND merchant_id IN (
            SELECT merchant_id FROM output WHERE vanished_at IS NULL
            GROUP BY merchant_id HAVING SUM(amount_sats * 1.0) > 2100000000000000
        )""",
    # What was added up beyond 64 bits, SQLite has kept as a number with an exponent. A balance is
    # the sum of its outputs, so it is counted anew.
    """UPDATE balance SET
        confirmed_sats = (SELECT COALESCE(SUM(amount_sats), 0) FROM output
            WHERE output.merchant_id = balance.merchant_id AND payment_id IS NOT NULL
            AND vanished_at IS NULL AND spent_height IS NULL),
        total_sats = (SELECT COALESCE(SUM(amount_sats), 0) FROM output
            WHERE output.merchant_id = balance.merchant_id
            AND vanished_at IS NULL AND spent_height IS NULL),
        settled_sats = (SELECT COALESCE(SUM(amount_sats), 0) FROM output
            WHERE output.merchant_id = balance.merchant_id AND payment_id IS NOT NULL)""",
)


def up(migrator, db):
    """Adds columns, counts balances anew; satoshis are whole numbers from now on."""
    for statement in STATEMENTS:
        db.execute_sql(statement)
    if type(migrator).__name__ == "SqliteMigrator":  # a server's columns hold nothing else
        for table, column in SATOSHIS:
            _refuse_others(db, table, column)
        _require_integers(db)


def _refuse_others(db, table, column):
    """Raises ValueError for a row that no program of ours has written."""
    found = db.execute_sql(
        f"SELECT count(*) FROM {table} WHERE typeof({column}) <> 'integer'"  # noqa: S608
    ).fetchone()
    if found[0]:
        raise ValueError(f"{table}.{column} is no whole number in {found[0]} row(s)")


def _require_integers(db):
    """A CHECK for each column, as SQLite's manual adds one to a table that is in use.

    No row is written anew, and indexes and references stay: sqlite.org/lang_altertable.html,
    "Making Other Kinds Of Table Schema Changes", the procedure for what changes no content.
    """
    (version,) = db.execute_sql("PRAGMA schema_version").fetchone()
    db.execute_sql("PRAGMA writable_schema = ON")
    try:
        for table, column in SATOSHIS:
            was = f"{column} BIGINT NOT NULL"
            cursor = db.execute_sql(
                "UPDATE sqlite_master SET sql = replace(sql, ?, ?)"
                " WHERE type = 'table' AND name = ? AND instr(sql, ?) > 0",
                (was, f"{was} CHECK (typeof({column}) = 'integer')", table, was),
            )
            if cursor.rowcount != 1:
                raise ValueError(f"{table}.{column} is not as it was made")
        db.execute_sql(f"PRAGMA schema_version = {version + 1}")
    finally:
        db.execute_sql("PRAGMA writable_schema = RESET")
