"""The database table of the API keys' latest requests."""

from peewee import BigIntegerField, TextField

from storage.models import Table


class KeyRequests(Table):
    key_id = TextField()
    written_ms = BigIntegerField()
    requests = TextField()
