"""The peewee models, from which the queries are built; the rules stand in the schema.

Times are int milliseconds since 1970 UTC, amounts int satoshis, dollars exact decimal text.
"""

from storage.models.money import *
from storage.models.service import *
from storage.models.shop import *
