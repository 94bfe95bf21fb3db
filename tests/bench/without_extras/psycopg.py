"""A shop on SQLite has no such extra: peewee would load what is installed here for the tests."""

raise ImportError("the bench measures an installation without extras")
