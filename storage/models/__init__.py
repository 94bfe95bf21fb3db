"""The peewee models, from which queries are built. storage/schema/ has the constraints.

Times are int milliseconds since 1970 UTC. Bitcoin amounts are int satoshis. Amounts in
dollars or another currency are exact decimal text.
"""

from storage.models.money import *
from storage.models.service import *
from storage.models.shop import *
