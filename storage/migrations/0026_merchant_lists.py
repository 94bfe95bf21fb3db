"""What a merchant's pages list and look up: each by an index, however long the history is."""

# What wants attention, of one merchant alone: the others' rows are not gone through.
ATTENTION = (
    """CREATE TABLE new_attention (
        invoice_id TEXT PRIMARY KEY REFERENCES invoice (id),
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        reason TEXT NOT NULL CHECK (reason IN ('reorganised', 'paid_late', 'short', 'too_much',
                                               'after_cancellation', 'dust_missing')),
        since_at BIGINT NOT NULL
    )""",
    """INSERT INTO new_attention (invoice_id, merchant_id, reason, since_at)
        SELECT invoice_id, merchant_id, reason, since_at
        FROM attention JOIN invoice ON invoice.id = attention.invoice_id""",
    "DROP TABLE attention",
    "ALTER TABLE new_attention RENAME TO attention",
    "CREATE INDEX attention_reason ON attention (reason)",
    "CREATE INDEX attention_since ON attention (since_at, invoice_id)",
    "CREATE INDEX attention_of_merchant ON attention (merchant_id, since_at, invoice_id)",
)
LOOSE = (
    "CREATE INDEX payment_without_invoice ON payment (merchant_id, created_at, seq)"
    " WHERE invoice_id IS NULL"
)
# By the beginning of a transaction's id, an invoice's or an address. SQLite compares texts byte by
# byte, and so do its UNIQUE indexes; a server does when it is told to.
TXID = "CREATE INDEX output_txid ON output (txid)"
ON_SERVERS = (
    "CREATE INDEX output_txid ON output (txid text_pattern_ops)",
    "CREATE INDEX invoice_id_begins ON invoice (id text_pattern_ops)",
    "CREATE INDEX invoice_address_begins ON invoice (deposit_address text_pattern_ops)",
)


def up(migrator, db):
    """Adds a column, which comes from the invoice, and indexes."""
    is_sqlite = type(migrator).__name__ == "SqliteMigrator"
    for statement in (*ATTENTION, LOOSE, *((TXID,) if is_sqlite else ON_SERVERS)):
        db.execute_sql(statement)
