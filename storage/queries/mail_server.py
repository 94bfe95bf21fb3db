"""The mail server that the owner has set in the browser: one row, or none."""

from storage.models import StoredMailServer
from storage.statement import all_columns

STORED = StoredMailServer.select()
PUT = StoredMailServer.insert(all_columns(StoredMailServer)).on_conflict(
    conflict_target=[StoredMailServer.id],
    preserve=[
        field
        for field in all_columns(StoredMailServer)
        if field is not StoredMailServer.id
    ],
)
REMOVE = StoredMailServer.delete()
