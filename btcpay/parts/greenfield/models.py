"""The table of the stores that shops' plug-ins know."""

from peewee import BigIntegerField, TextField

from storage.models import Table


class Store(Table):
    id = TextField()
    merchant_id = BigIntegerField()
    shop_url = TextField()
    created_ms = BigIntegerField()
