"""Nodes of the network: when each was good, and which are left alone."""

from storage.models import Peer
from storage.statement import slot, slots

# The last that were good first.
ALL = Peer.select().order_by(Peer.good_at.is_null(), Peer.good_at.desc(), Peer.place)
GOOD = Peer.insert(slots(Peer.place, Peer.good_at, Peer.height)).on_conflict(
    conflict_target=[Peer.place],
    update={Peer.good_at: slot("good_at"), Peer.height: slot("height"), Peer.left_until: None},
)
LEAVE = Peer.insert(slots(Peer.place, Peer.left_until)).on_conflict(
    conflict_target=[Peer.place], update={Peer.left_until: slot("left_until")}
)
_LAST_GOOD = (
    Peer.select(Peer.place).where(Peer.good_at.is_null(False)).order_by(Peer.good_at.desc())
)
FORGET = Peer.delete().where(
    (Peer.left_until.is_null() | (Peer.left_until < slot("now")))
    & Peer.place.not_in(_LAST_GOOD.limit(8))
)
FORGET_ALL = Peer.delete()
