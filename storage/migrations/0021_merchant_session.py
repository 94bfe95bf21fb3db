"""The way in to the merchant's pages: links that work once, and sessions of browsers."""

# Of both secrets only the SHA-256 is kept. A link is deleted when it is used, a session when it
# ends, so that neither can come back.
TABLES = (
    """CREATE TABLE merchant_login (
        secret_sha256 TEXT PRIMARY KEY,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        expires_at BIGINT NOT NULL
    )""",
    """CREATE TABLE merchant_session (
        id TEXT PRIMARY KEY,
        merchant_id BIGINT NOT NULL REFERENCES merchant (id),
        secret_sha256 TEXT NOT NULL UNIQUE,
        browser TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        last_used_at BIGINT NOT NULL
    )""",
    "CREATE INDEX merchant_session_of_merchant ON merchant_session (merchant_id, created_at)",
)


def up(migrator, db):
    """Creates the tables; nobody is logged in."""
    for statement in TABLES:
        db.execute_sql(statement)
