"""Proofs of payment, and the way to find the payments of a block."""

STATEMENTS = (
    # What convinced the service, as JSON that can be checked again offline. A payment that a
    # reorganisation undoes takes its proof with it.
    """CREATE TABLE proof (
        payment_id TEXT PRIMARY KEY REFERENCES payment (id),
        document TEXT NOT NULL
    )""",
    # Recent blocks are compared with the chain's: one question for all payments of a block.
    "CREATE INDEX output_of_block ON output (block_height, block_hash)"
    " WHERE payment_id IS NOT NULL",
)


def up(migrator, db):
    """Adds the table and the index."""
    for statement in STATEMENTS:
        db.execute_sql(statement)
