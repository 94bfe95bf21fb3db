"""The database table of stores. A store is a shop as the Greenfield API shows it."""

from peewee import BigIntegerField, TextField

from storage.models import Table


class Store(Table):
    id = TextField()
    merchant_id = BigIntegerField()
    shop_url = TextField()
    created_ms = BigIntegerField()
