"""The base of every model: a table of its name in small letters, as the schema has it."""

from peewee import Model


class Table(Model):
    class Meta:
        legacy_table_names = False  # MerchantDay is merchant_day
