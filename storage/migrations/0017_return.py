"""The way back to the shop: where the pages of a merchant's invoices lead, paid and unpaid."""

# Nothing but a web address: a page never shows a link that runs something.
ADD = (
    "ALTER TABLE brand ADD COLUMN {name} TEXT CHECK (substr({name}, 1, 7) = 'http://'"
    " OR substr({name}, 1, 8) = 'https://')"
)


def up(migrator, db):
    """Adds the columns. In an address `{invoice}` stands for the id."""
    for name in ("return_paid", "return_unpaid"):
        db.execute_sql(ADD.format(name=name))
