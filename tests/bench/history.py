"""What a filled database has beside invoices: payments, coins, events, links, attention."""

import sqlite3

# Nobody pays an invoice that has no deadline and is never paid: such stay open for ever.
STATEMENTS = (
    "UPDATE invoice SET expires_at = NULL WHERE status = 'open'",
    """INSERT INTO payment (id, merchant_id, address_invoice_id, invoice_id, amount_sats,
            amount_usd_at_receipt, tx_hash, created_at)
        SELECT 'pay_' || substr(id, 5), merchant_id, id, id, amount_sats, amount_usd_quote,
            tx_hash, paid_at
        FROM invoice WHERE status = 'paid' ORDER BY seq""",
    # Every other coin has moved on.
    """INSERT INTO output (txid, vout, invoice_id, merchant_id, amount_sats, coinbase,
            first_seen_at, seen_waiting, block_height, block_hash, block_time_at, position,
            spent_height, payment_id)
        SELECT tx_hash, 0, address_invoice_id, merchant_id, amount_sats, 0, created_at, 1,
            800000 + seq / 100, tx_hash, created_at, 1,
            CASE WHEN seq % 2 = 0 THEN 800001 + seq / 100 END, id
        FROM payment""",
    """INSERT INTO event (invoice_id, happened_at, kind, detail)
        SELECT address_invoice_id, created_at, 'payment', '{"id": "' || id || '"}'
        FROM payment ORDER BY seq""",
    """INSERT INTO balance (merchant_id, confirmed_sats, total_sats, settled_sats)
        SELECT merchant_id,
            SUM(CASE WHEN spent_height IS NULL THEN amount_sats ELSE 0 END),
            SUM(CASE WHEN spent_height IS NULL THEN amount_sats ELSE 0 END), SUM(amount_sats)
        FROM output GROUP BY merchant_id""",
    """INSERT INTO merchant_day (merchant_id, day, payments, unpriced, received_sats, usd_cents)
        SELECT merchant_id, created_at / 86400000, COUNT(*), 0, SUM(amount_sats),
            SUM(CAST(REPLACE(amount_usd_at_receipt, '.', '') AS BIGINT))
        FROM payment GROUP BY merchant_id, created_at / 86400000""",
    """INSERT INTO payment_link (id, merchant_id, status, amount_mode, created_at)
        SELECT 'lnk_' || substr(id, 5), merchant_id, 'active', 'flexible', created_at
        FROM invoice WHERE address_index % 100 = 0 ORDER BY seq""",
    """INSERT INTO attention (invoice_id, merchant_id, reason, since_at)
        SELECT id, merchant_id, 'short', finished_at FROM invoice
        WHERE status = 'expired' AND address_index % 50 < 4""",
    # How far each paid address lies behind the paid one before it; the first one has the number 0.
    """UPDATE invoice SET gap_before = steps.step FROM (
        SELECT seq, address_index - COALESCE(
            LAG(address_index) OVER (PARTITION BY merchant_id ORDER BY address_index), -1) AS step
        FROM invoice WHERE EXISTS (
            SELECT 1 FROM output WHERE output.invoice_id = invoice.id AND vanished_at IS NULL)
    ) AS steps WHERE steps.seq = invoice.seq""",
)


def add_history(connection: sqlite3.Connection) -> None:
    """Makes it of the invoices that there are; the caller commits."""
    for statement in STATEMENTS:
        connection.execute(statement)
