"""Makes and restores backups of SQLite databases, and moves them to PostgreSQL."""
