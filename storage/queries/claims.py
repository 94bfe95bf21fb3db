"""Claims: which addresses a runner of a check will look at, so that other runners leave them.

Only on a server. With SQLite there is one runner at a time, which need not claim.
"""

from collections.abc import Mapping, Sequence

from peewee import fn

from storage.database import Database, slot
from storage.models import Invoice

CLOCKS_MS = 60_000  # as far as the clocks of two machines may differ

# A row that another runner has locked now is being claimed, or was just looked at.
_FREE = (
    Invoice.select(Invoice.id, Invoice.looks)
    .where(
        (Invoice.id == fn.ANY(slot("ids")))
        & (
            Invoice.claimed_until.is_null()
            | (Invoice.claimed_until <= slot("now"))
            # Later than any claim lasts: it was written by a wrong clock.
            | (Invoice.claimed_until > slot("wrong"))
            # An address whose last look failed is free for all. Otherwise a runner with a broken
            # explorer, if it is always the first, would keep it from one with a good explorer.
            | (Invoice.failures > 0)
        )
    )
    .for_update(skip_locked=True)
)
_CLAIM = Invoice.update({Invoice.claimed_until: slot("until")}).where(
    Invoice.id == fn.ANY(slot("ids"))
)
# Waits for nobody: undoing a block locks several invoices too, in another order. A claim that is
# left out here ends by itself.
_RELEASE = Invoice.update({Invoice.claimed_until: None}).where(
    Invoice.id.in_(
        Invoice.select(Invoice.id)
        .where((Invoice.id == fn.ANY(slot("ids"))) & (Invoice.claimed_until == slot("until")))
        .for_update(skip_locked=True)
    )
)

_LOOKS = Invoice.select(Invoice.id, Invoice.looks).where(Invoice.id == fn.ANY(slot("ids")))


def unseen(db: Database, looks: Mapping[str, int]) -> list[str]:
    """Those of these invoices that nobody has looked at since they were planned, in their order."""
    now = {row["id"]: row["looks"] for row in db.rows(_LOOKS, ids=list(looks))}
    return [invoice_id for invoice_id, count in looks.items() if now[invoice_id] == count]


def claim(
    db: Database, ids: Sequence[str], looks: Mapping[str, int], now_ms: int, until_ms: int
) -> list[str]:
    """Claims for this runner those invoices that nobody else has, and returns them in order.

    `looks` has the counts that the plan was made with; what was looked at since is left out.
    """
    with db.write():
        rows = db.rows(_FREE, ids=list(ids), now=now_ms, wrong=until_ms + CLOCKS_MS)
        free = {row["id"] for row in rows if row["looks"] == looks[row["id"]]}
        db.run(_CLAIM, ids=list(free), until=until_ms)
    return [invoice_id for invoice_id in ids if invoice_id in free]


def release(db: Database, ids: Sequence[str], until_ms: int) -> None:
    """Gives back the claims that end then; one that another runner has taken over stays."""
    db.run(_RELEASE, ids=list(ids), until=until_ms)
