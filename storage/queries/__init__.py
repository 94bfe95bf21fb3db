"""All queries, usually one file for each table. A query is compiled once."""
