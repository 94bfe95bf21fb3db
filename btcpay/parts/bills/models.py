"""The database table of bills."""

from enum import StrEnum

from peewee import BigIntegerField, TextField

from storage.models import Table, word_field


class BillStatus(StrEnum):
    OPEN = "open"
    PAID = "paid"
    ENDED = "ended"


class Bill(Table):
    seq = BigIntegerField()
    id = TextField()
    merchant_id = BigIntegerField()
    status = word_field(BillStatus)
    amount = TextField()
    currency = TextField()
    paid = TextField()
    description = TextField(null=True)
    reference = TextField(null=True)
    customer_email = TextField(null=True)
    created_ms = BigIntegerField()
    due_days = BigIntegerField()
    due_ms = BigIntegerField()
    paid_ms = BigIntegerField(null=True)
    every = TextField(null=True)
    series_id = TextField(null=True)
    number = BigIntegerField()
    first_local = TextField(null=True)
    until_day = BigIntegerField(null=True)
    renews = BigIntegerField(null=True)
    renews_ms = BigIntegerField(null=True)
    stopped_ms = BigIntegerField(null=True)
    held_ms = BigIntegerField(null=True)
    undone_ms = BigIntegerField(null=True)
