"""A second currency: a merchant's, and what a bitcoin or a payment was worth in it."""

# `price_in_currency`: of one bitcoin when the invoice was made; `amount_at_receipt`: the payment's
# value when it was recorded. Decimal texts, each with the currency of that time, or neither.
COLUMNS = (
    ("invoice", "price_in_currency"),
    ("payment", "amount_at_receipt"),
)
CODE = "ALTER TABLE {table} ADD COLUMN currency TEXT CHECK (length(currency) = 3)"
VALUE = (
    "ALTER TABLE {table} ADD COLUMN {column} TEXT CHECK (({column} IS NULL) = (currency IS NULL))"
)


def up(migrator, db):
    """Adds the columns; no merchant has a second currency."""
    db.execute_sql(CODE.format(table="merchant"))
    for table, column in COLUMNS:
        db.execute_sql(CODE.format(table=table))
        db.execute_sql(VALUE.format(table=table, column=column))
