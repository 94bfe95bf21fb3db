"""What explorers were asked, what they asked of us, which coins may have moved, and the order."""

STATEMENTS = (
    # `root` is host, port and path: what else a URL holds may be secret. `rests_until_at` is when
    # an explorer that said "too many" may be asked again, `refusals` how often it said so in a row.
    """CREATE TABLE explorer (
        root TEXT PRIMARY KEY,
        refusals BIGINT NOT NULL CHECK (refusals > 0),
        rests_until_at BIGINT NOT NULL
    )""",
    # Calls in each minute, counted before they are made: a process that dies has spent them.
    # `swept` is the part that was meant for addresses that nobody waits for.
    """CREATE TABLE explorer_use (
        root TEXT NOT NULL,
        minute_at BIGINT NOT NULL,
        calls BIGINT NOT NULL CHECK (calls >= 0),
        swept BIGINT NOT NULL CHECK (swept >= 0),
        PRIMARY KEY (root, minute_at)
    )""",
    # The transaction's place in its block, as proven: the chain's order within a block.
    "ALTER TABLE output ADD COLUMN position BIGINT",
    # What is proven is followed, whether it counts yet or not.
    "DROP INDEX output_of_block",
    "CREATE INDEX output_of_block ON output (block_height, block_hash) WHERE proven = 1",
    # The last look found money in a block that no explorer could prove: look again soon.
    "ALTER TABLE invoice ADD COLUMN doubted_at BIGINT",
    # Looks that failed in a row and the last of them: an address that always fails waits longer.
    "ALTER TABLE invoice ADD COLUMN failures BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE invoice ADD COLUMN failed_at BIGINT",
    # Once an hour one funded address is asked whether its coin has moved; since `swept_at` it is
    # known that one has, and every other that was not looked at since is asked as well.
    "ALTER TABLE merchant ADD COLUMN probed_at BIGINT",
    "ALTER TABLE merchant ADD COLUMN swept_at BIGINT",
)


def up(migrator, db):
    """Adds tables and columns."""
    for statement in STATEMENTS:
        db.execute_sql(statement)
