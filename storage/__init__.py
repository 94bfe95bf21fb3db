"""The database: the models, the migrations and every query."""
