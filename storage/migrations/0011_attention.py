"""Invoices that want a human, and why: few rows beside many invoices."""

# The reason is decided by btcpay/settlement/attention.py, in the transaction of what happened; the
# index counts them by reason at each scrape.
TABLE = """CREATE TABLE attention (
    invoice_id TEXT PRIMARY KEY REFERENCES invoice (id),
    reason TEXT NOT NULL CHECK (reason IN ('reorganised', 'paid_late', 'short', 'too_much',
                                           'after_cancellation', 'dust_missing')),
    since_at BIGINT NOT NULL
)"""
INDEX = "CREATE INDEX attention_reason ON attention (reason)"

# What happened before there was this table, as far as it shows in the rows: whoever upgrades has
# seen none of it. The first reason that fits stays.
_CAME = "(SELECT SUM(amount_sats) FROM payment WHERE address_invoice_id = invoice.id)"
_BESIDE = """EXISTS (SELECT 1 FROM payment
    WHERE address_invoice_id = invoice.id AND payment.invoice_id IS NULL)"""
_DUST = """(SELECT CASE script_type WHEN 'p2wpkh' THEN 294 WHEN 'p2pkh' THEN 546 ELSE 540 END
    FROM merchant WHERE merchant.id = invoice.merchant_id)"""
_LATE = """EXISTS (SELECT 1 FROM output WHERE output.invoice_id = invoice.id
    AND payment_id IS NOT NULL AND first_seen_at >= invoice.expires_at
    AND block_time_at >= invoice.expires_at)"""
_UNDONE = """EXISTS (SELECT 1 FROM event AS undone WHERE undone.invoice_id = invoice.id
    AND undone.kind = 'reorganised'
    AND REPLACE(undone.detail, '"reopened": true', '') <> undone.detail
    AND NOT EXISTS (SELECT 1 FROM event AS later WHERE later.invoice_id = invoice.id
        AND later.kind = 'paid' AND later.seq > undone.seq))"""
EARLIER = (
    ("reorganised", f"status IN ('open', 'expired') AND {_UNDONE}"),
    ("paid_late", f"status = 'expired' AND {_LATE}"),
    ("short", f"status = 'expired' AND {_BESIDE}"),
    ("after_cancellation", f"status = 'canceled' AND {_BESIDE}"),
    (
        "too_much",
        f"status = 'paid' AND settled_reason IS NULL AND {_CAME} >= amount_sats + {_DUST}",
    ),
    ("dust_missing", f"status = 'open' AND amount_sats - {_CAME} BETWEEN 1 AND {_DUST} - 1"),
)
_ADD = """INSERT INTO attention (invoice_id, reason, since_at)
    SELECT id, '{reason}', COALESCE(finished_at, created_at) FROM invoice
    WHERE {condition} AND id NOT IN (SELECT invoice_id FROM attention)"""


def up(migrator, db):
    """Adds the table, with what wants attention already; an open invoice since it was made."""
    db.execute_sql(TABLE)
    for reason, condition in EARLIER:
        db.execute_sql(_ADD.format(reason=reason, condition=condition))
    db.execute_sql(INDEX)
