"""Claims: several runners of a check on one server share the addresses that are to be looked at."""


def up(migrator, db):
    """Adds the column.

    Until then one runner means to look at the address; the others pass it by. Only thrift hangs
    on it: what two runners have looked at all the same, the count of looks applies once.
    """
    db.execute_sql("ALTER TABLE invoice ADD COLUMN claimed_until BIGINT")
