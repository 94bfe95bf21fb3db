"""Whole databases: copied, put in place, carried over to a server."""
