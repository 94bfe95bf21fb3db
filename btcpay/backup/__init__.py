"""Whole copies of the database, and their return without giving out an address twice."""
