"""Calls to block explorers by minute, the explorers' back-off, and known peers."""

from peewee import EXCLUDED

from storage.models import Explorer, ExplorerUse, ExplorerWithoutMempool, Peer
from storage.statement import all_columns, eq, param, params

USED = ExplorerUse.select().where(
    ExplorerUse.minute_ms > param("after"), ExplorerUse.minute_ms <= param("now")
)
SPEND = ExplorerUse.insert(all_columns(ExplorerUse)).on_conflict(
    conflict_target=[ExplorerUse.root, ExplorerUse.minute_ms],
    update={ExplorerUse.calls: ExplorerUse.calls + EXCLUDED.calls},
)
# Also deletes times in the future, which a fast clock has stored.
FORGET = ExplorerUse.delete().where(
    (ExplorerUse.minute_ms < param("before")) | (ExplorerUse.minute_ms > param("now"))
)

REFUSAL = Explorer.select().where(eq(Explorer.root))
REFUSED = Explorer.insert(all_columns(Explorer)).on_conflict(
    conflict_target=[Explorer.root],
    update={
        Explorer.refusals: Explorer.refusals + 1,
        Explorer.rests_until_ms: EXCLUDED.rests_until_ms,
    },
)
ANSWERED = Explorer.delete().where(eq(Explorer.root))

WITHOUT_MEMPOOL = ExplorerWithoutMempool.select().where(eq(ExplorerWithoutMempool.root))
NOTE_WITHOUT_MEMPOOL = ExplorerWithoutMempool.insert(
    all_columns(ExplorerWithoutMempool)
).on_conflict(
    conflict_target=[ExplorerWithoutMempool.root],
    update={ExplorerWithoutMempool.until_ms: EXCLUDED.until_ms},
)
FORGET_WITHOUT_MEMPOOL = ExplorerWithoutMempool.delete().where(
    eq(ExplorerWithoutMempool.root)
)

# All peers. The peer that worked most recently comes first.
PEERS = Peer.select().order_by(Peer.good_ms.is_null(), Peer.good_ms.desc(), Peer.place)
PEER_GOOD = Peer.insert(params(Peer.place, Peer.good_ms, Peer.height)).on_conflict(
    conflict_target=[Peer.place],
    update={
        Peer.good_ms: param("good_ms"),
        Peer.height: param("height"),
        Peer.left_until: None,
    },
)
LEAVE_PEER = Peer.insert(params(Peer.place, Peer.left_until)).on_conflict(
    conflict_target=[Peer.place], update={Peer.left_until: param("left_until")}
)
_LAST_GOOD = Peer.select(Peer.place).where(Peer.good_ms.is_null(False))
FORGET_PEERS = Peer.delete().where(
    Peer.left_until.is_null() | (Peer.left_until < param("now")),
    Peer.place.not_in(_LAST_GOOD.order_by(Peer.good_ms.desc()).limit(8)),
)
FORGET_ALL_PEERS = Peer.delete()
