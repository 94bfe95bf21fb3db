"""Whole copies of the database, and the way back without giving out an address twice."""
