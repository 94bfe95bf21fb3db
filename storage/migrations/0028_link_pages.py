"""What came through a payment link, the newest first, however much that is."""


def up(migrator, db):
    """Adds an index; most invoices have no link, and are not in it."""
    db.execute_sql(
        "CREATE INDEX invoice_of_link_newest ON invoice (payment_link_id, created_at, seq)"
        " WHERE payment_link_id IS NOT NULL"
    )
