"""Amounts that the page of a payment link suggests."""

# Decimal texts in USD with a space between, in the order in which they are shown. Where the price
# is fixed there is nothing to choose.
ADD = (
    "ALTER TABLE payment_link ADD COLUMN suggested TEXT"
    " CHECK (suggested IS NULL OR amount_mode = 'flexible')"
)


def up(migrator, db):
    """Adds the column; no link suggests anything."""
    db.execute_sql(ADD)
