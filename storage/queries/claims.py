"""Claims: which addresses one runner of a check means to look at, so that others pass them by.

On a server alone: with SQLite there is one runner at a time, and no need to claim.
"""

from collections.abc import Mapping, Sequence

from peewee import fn

from storage.database import Database, slot
from storage.models import Invoice

CLOCKS_MS = 60_000  # clocks of two machines may differ by so much

# What others have locked this moment they are about to claim, or have just looked at.
_FREE = (
    Invoice.select(Invoice.id, Invoice.looks)
    .where(
        (Invoice.id == fn.ANY(slot("ids")))
        & (
            Invoice.claimed_until.is_null()
            | (Invoice.claimed_until <= slot("now"))
            # Much longer than any claim lasts: the clock was wrong when it was written.
            | (Invoice.claimed_until > slot("wrong"))
            # Whose last look failed is anybody's: a runner with a sick explorer, always the first,
            # would keep it from one with a good one.
            | (Invoice.failures > 0)
        )
    )
    .for_update(skip_locked=True)
)
_CLAIM = Invoice.update({Invoice.claimed_until: slot("until")}).where(
    Invoice.id == fn.ANY(slot("ids"))
)
# Waits for nobody: who undoes a block holds several invoices too, in an order of its own. A claim
# that is left out ends by itself.
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
    """Those of these invoices that nobody else looks at, in their order; they are this runner's.

    `looks` has the counts that the plan was made with: what was looked at since is left out.
    """
    with db.write():
        rows = db.rows(_FREE, ids=list(ids), now=now_ms, wrong=until_ms + CLOCKS_MS)
        free = {row["id"] for row in rows if row["looks"] == looks[row["id"]]}
        db.run(_CLAIM, ids=list(free), until=until_ms)
    return [invoice_id for invoice_id in ids if invoice_id in free]


def release(db: Database, ids: Sequence[str], until_ms: int) -> None:
    """Gives back what was claimed until then; a claim that another has taken over stays his."""
    db.run(_RELEASE, ids=list(ids), until=until_ms)
