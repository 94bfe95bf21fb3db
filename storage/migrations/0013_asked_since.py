"""Since when the page of an invoice is looked at: the longer in vain, the less it is urgent."""


def up(migrator, db):
    """Adds the column; empty for pages that were opened before, which begin anew.

    `asked_at` is the last time that somebody looked at the page, `asked_since` the first one after
    a pause of hours.
    """
    db.execute_sql("ALTER TABLE invoice ADD COLUMN asked_since BIGINT")
