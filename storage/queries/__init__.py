"""Every query, one file a table, compiled once."""
