"""Backups of SQLite databases, their restore, and the move to PostgreSQL."""
