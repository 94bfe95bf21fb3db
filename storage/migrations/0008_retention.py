"""Erasing customers' e-mail addresses: what finds them without reading every invoice."""

STATEMENTS = (
    # Only what is finished and still has an address: empty where none are given or all erased.
    "CREATE INDEX invoice_email ON invoice (finished_at)"
    " WHERE customer_email IS NOT NULL AND finished_at IS NOT NULL",
    # The kept answer holds the address too; by this its invoice finds it.
    "ALTER TABLE idempotency_key ADD COLUMN resource_id TEXT",
    "UPDATE idempotency_key SET resource_id = {id} WHERE response IS NOT NULL",
    "CREATE INDEX idempotency_key_resource ON idempotency_key (resource_id)"
    " WHERE resource_id IS NOT NULL",
)


def up(migrator, db):
    """Adds column and indexes; `id` is read from the answer, which both databases spell anew."""
    sqlite = type(migrator).__name__ == "SqliteMigrator"
    of_answer = "json_extract(response, '$.id')" if sqlite else "response::json ->> 'id'"
    for statement in STATEMENTS:
        db.execute_sql(statement.format(id=of_answer))
