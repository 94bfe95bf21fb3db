"""Explorers: the calls of each minute, and who asked to be left alone."""

from peewee import EXCLUDED

from storage.models import Explorer, ExplorerUse
from storage.statement import slot, slots

USED = ExplorerUse.select().where(
    (ExplorerUse.minute_at > slot("after")) & (ExplorerUse.minute_at <= slot("now"))
)
SPEND = ExplorerUse.insert(
    slots(ExplorerUse.root, ExplorerUse.minute_at, ExplorerUse.calls)
).on_conflict(
    conflict_target=[ExplorerUse.root, ExplorerUse.minute_at],
    update={ExplorerUse.calls: ExplorerUse.calls + EXCLUDED.calls},
)
# Also times in the future, which a clock that was ahead has left.
FORGET = ExplorerUse.delete().where(
    (ExplorerUse.minute_at < slot("before")) | (ExplorerUse.minute_at > slot("now"))
)

REFUSAL = Explorer.select().where(Explorer.root == slot("root"))
REFUSED = Explorer.insert(
    slots(Explorer.root, Explorer.refusals, Explorer.rests_until_at)
).on_conflict(
    conflict_target=[Explorer.root],
    update={
        Explorer.refusals: Explorer.refusals + 1,
        Explorer.rests_until_at: EXCLUDED.rests_until_at,
    },
)
ANSWERED = Explorer.delete().where(Explorer.root == slot("root"))
