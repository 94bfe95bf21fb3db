"""Whole copies of the database, and how to restore one without giving out an address twice."""
