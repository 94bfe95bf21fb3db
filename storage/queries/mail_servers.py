"""The mail server that the owner has set in the browser: one row at most."""

from peewee import fn

from storage.models import Merchant, StoredMailServer
from storage.statement import all_columns

ONLY = 1  # the id of the row

GET = StoredMailServer.select()
_MERCHANTS = Merchant.select(fn.COUNT(Merchant.id))
# The row is only used while the service has a single merchant.
IN_USE = GET.where(_MERCHANTS == 1)
IS_IN_USE = fn.EXISTS(StoredMailServer.select(1).where(_MERCHANTS == 1))
PUT = StoredMailServer.insert(all_columns(StoredMailServer)).on_conflict(
    conflict_target=[StoredMailServer.id],
    preserve=[
        field
        for field in all_columns(StoredMailServer)
        if field is not StoredMailServer.id
    ],
)
REMOVE = StoredMailServer.delete()
