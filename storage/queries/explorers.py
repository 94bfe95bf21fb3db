"""Explorers: the calls of each minute, and who asked to be left alone."""

from peewee import EXCLUDED, fn

from storage.database import slot, slots
from storage.models import Explorer, ExplorerUse

_LATELY = (ExplorerUse.minute_at > slot("after")) & (ExplorerUse.minute_at <= slot("now"))

USED = (
    ExplorerUse.select(
        ExplorerUse.root,
        fn.SUM(ExplorerUse.calls).cast("BIGINT").alias("calls"),
        fn.SUM(ExplorerUse.swept).cast("BIGINT").alias("swept"),
    )
    .where(_LATELY)
    .group_by(ExplorerUse.root)
)
USED_OF_ROOT = ExplorerUse.select(
    fn.COALESCE(fn.SUM(ExplorerUse.calls), 0).cast("BIGINT").alias("calls")
).where(_LATELY & (ExplorerUse.root == slot("root")))
# The last minutes in which any explorer was asked, the newest first.
MINUTES = (
    ExplorerUse.select(ExplorerUse.minute_at)
    .where(ExplorerUse.minute_at <= slot("now"))
    .distinct()
    .order_by(ExplorerUse.minute_at.desc())
    .limit(2)
)
SPEND = ExplorerUse.insert(
    slots(ExplorerUse.root, ExplorerUse.minute_at, ExplorerUse.calls, ExplorerUse.swept)
).on_conflict(
    conflict_target=[ExplorerUse.root, ExplorerUse.minute_at],
    update={
        ExplorerUse.calls: ExplorerUse.calls + EXCLUDED.calls,
        ExplorerUse.swept: ExplorerUse.swept + EXCLUDED.swept,
    },
)
GIVE_BACK = ExplorerUse.update({ExplorerUse.calls: ExplorerUse.calls - slot("calls")}).where(
    (ExplorerUse.root == slot("root")) & (ExplorerUse.minute_at == slot("minute_at"))
)
# Also times in the future, which a clock that was ahead has left.
FORGET = ExplorerUse.delete().where(
    (ExplorerUse.minute_at < slot("before")) | (ExplorerUse.minute_at > slot("now"))
)

RESTS = Explorer.select()
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
