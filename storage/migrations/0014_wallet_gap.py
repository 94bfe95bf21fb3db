"""The gap limit that each merchant's wallet was last said to have."""


def up(migrator, db):
    """Adds the column: 20 (BIP44) is what wallets come with, until the operator says otherwise."""
    db.execute_sql(
        "ALTER TABLE merchant ADD COLUMN wallet_gap_limit BIGINT NOT NULL DEFAULT 20"
        " CHECK (wallet_gap_limit BETWEEN 1 AND 1000000)"
    )
