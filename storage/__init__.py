"""The database layer: models, schema migrations and all queries."""
