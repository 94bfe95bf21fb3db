"""Pending or failed work of parts (optional plug-ins), and of the core (other code)."""

from peewee import fn

from storage.models import PartWork
from storage.queries import pauses
from storage.statement import all_columns, eq, param, rows_as

CORE = "core"  # in place of a part's name: the core could not read the block

_THIS = eq(PartWork.part, PartWork.kind, PartWork.height, PartWork.invoice_id)
_KEY = [PartWork.part, PartWork.kind, PartWork.height, PartWork.invoice_id]

# A second insert changes nothing.
ADD = PartWork.insert(all_columns(PartWork)).on_conflict("NOTHING")
# Counts one more failure.
FAIL = PartWork.insert(all_columns(PartWork)).on_conflict(
    conflict_target=_KEY,
    preserve=[PartWork.next_ms, PartWork.reason],
    update={PartWork.failures: PartWork.failures + 1},
)
OF = PartWork.select().where(_THIS)
DONE = PartWork.delete().where(_THIS)
# Deletes the row, unless it has failed again since it was read.
DONE_AS_READ = DONE.where(eq(PartWork.failures))
DUE = (
    PartWork.select()
    .where(eq(PartWork.kind), pauses.is_over(PartWork.next_ms))
    .order_by(PartWork.height, PartWork.part, PartWork.invoice_id)
    .limit(param("limit"))
)
OF_KIND = PartWork.select().where(eq(PartWork.part, PartWork.kind)).limit(1)
FAILED = (
    PartWork.select()
    .where(PartWork.failures > 0)
    .order_by(PartWork.part, PartWork.kind, PartWork.height, PartWork.invoice_id)
    .limit(param("limit"))
)
# Blocks that the core could not read do not count: they already count as unread blocks, so that no
# run is complete.
FAILED_COUNT = rows_as(
    tuple[int],
    PartWork.select(fn.COUNT(PartWork.part)).where(
        PartWork.failures > 0, PartWork.part != CORE
    ),
)
# Blocks that have left the best chain are not read.
CUT = PartWork.delete().where(
    PartWork.kind == "block", PartWork.height > param("height")
)


def describe_work(kind: str, height: int, invoice_id: str) -> str:
    """Returns a phrase that names the work for people, such as "block 800000"."""
    phrases = {
        "block": f"block {height}",
        "undo": f"the blocks above {height} that left the chain",
        "money": f"the money of invoice {invoice_id}",
        "check": "its work of each check",
    }
    return phrases[kind]
