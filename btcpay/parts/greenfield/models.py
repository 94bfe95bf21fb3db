"""The database table of stores: the shops that the Greenfield API knows."""

from peewee import BigIntegerField, TextField

from storage.models import Table


class Store(Table):
    id = TextField()
    merchant_id = BigIntegerField()
    shop_url = TextField()
    created_ms = BigIntegerField()
