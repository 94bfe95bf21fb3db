"""What a long history must not slow down: indexes of the few rows that are asked for, and gaps."""

# For each merchant, how far each paid address lies behind the paid one before it; the first
# address has the number 0.
GAPS = """UPDATE invoice SET gap_before = steps.step FROM (
        SELECT seq, address_index - COALESCE(
            LAG(address_index) OVER (PARTITION BY merchant_id ORDER BY address_index), -1) AS step
        FROM invoice WHERE EXISTS (
            SELECT 1 FROM output WHERE output.invoice_id = invoice.id AND vanished_at IS NULL)
    ) AS steps WHERE steps.seq = invoice.seq"""

STATEMENTS = (
    # So many addresses further than the last paid one before it, this one included; null while
    # nothing has come to it. The largest is the gap limit that a wallet needs, and found at once.
    "ALTER TABLE invoice ADD COLUMN gap_before BIGINT CHECK (gap_before > 0)",
    GAPS,
    "CREATE INDEX invoice_paid_index ON invoice (merchant_id, address_index)"
    " WHERE gap_before IS NOT NULL",
    "CREATE INDEX invoice_gap ON invoice (merchant_id, gap_before) WHERE gap_before IS NOT NULL",
    # Whom a check asks the mempool for: open, and looked at or near the deadline. Open are those
    # that have not finished; an index on a status would not be used where it is a parameter.
    "CREATE INDEX invoice_asked ON invoice (asked_at)"
    " WHERE finished_at IS NULL AND asked_at IS NOT NULL",
    "CREATE INDEX invoice_ending ON invoice (expires_at)"
    " WHERE finished_at IS NULL AND expires_at IS NOT NULL",
    # The same as before, found by a column: else SQLite may read all outputs by another index.
    "DROP INDEX output_waiting",
    "CREATE INDEX output_waiting ON output (payment_id, invoice_id)"
    " WHERE vanished_at IS NULL AND payment_id IS NULL",
    "CREATE INDEX output_vanished ON output (vanished_at) WHERE vanished_at IS NOT NULL",
    # What waits and may be replaced, and what was.
    "CREATE INDEX output_inputs ON output (payment_id, block_height)"
    " WHERE payment_id IS NULL AND block_height IS NULL AND inputs IS NOT NULL",
    "CREATE INDEX output_replaced ON output (replaced_height) WHERE replaced_height IS NOT NULL",
    # Coins, the longest unasked first; -1 for those of before blocks were followed.
    "UPDATE output SET asked_at = -1 WHERE asked_at IS NULL",
    "CREATE INDEX output_asked ON output (asked_at)"
    " WHERE block_height IS NOT NULL AND spent_height IS NULL",
    "CREATE INDEX attention_since ON attention (since_at, invoice_id)",
)


def up(migrator, db):
    """Adds column and indexes."""
    for statement in STATEMENTS:
        db.execute_sql(statement)
