"""Brands: the name, the logo and the colour that a merchant's pages show."""

STATEMENTS = (
    # A logo is stored with what its bytes said that it is, and is only ever served as that; its
    # hash is its address, so that browsers may keep it for ever.
    """CREATE TABLE brand (
        merchant_id BIGINT PRIMARY KEY REFERENCES merchant (id),
        name TEXT,
        accent TEXT,
        logo {bytes},
        logo_type TEXT CHECK (logo_type IN ('image/png', 'image/jpeg', 'image/webp')),
        logo_sha256 TEXT,
        CHECK ((logo IS NULL) = (logo_type IS NULL)),
        CHECK ((logo IS NULL) = (logo_sha256 IS NULL))
    )""",
    "CREATE INDEX brand_logo ON brand (logo_sha256) WHERE logo_sha256 IS NOT NULL",
)


def up(migrator, db):
    """Adds the table; `bytes` is the one word that the two databases spell differently."""
    sqlite = type(migrator).__name__ == "SqliteMigrator"
    for statement in STATEMENTS:
        db.execute_sql(statement.format(bytes="BLOB" if sqlite else "BYTEA"))
