"""Reading begins anew: when the chain was replaced below the first header, as on a test network."""

from datetime import datetime

from btcpay.check.undo import undo_above
from btcpay.settings.settings import Settings
from storage.database import Database
from storage.queries import blocks, meta

# In place of the height in a chain that is given up: no reorganisation reaches below the first.
PROVEN = 0


def begin_anew(db: Database, settings: Settings, now: datetime) -> None:
    """Forgets the chain, and what of it is no payment yet; the next check keeps a first header.

    A payment stays what it is; a block of the new chain that has it too gives it its place there.
    """
    with db.write():
        meta.lock(db)
        db.run(blocks.KEEP_PROVEN, height=PROVEN)
        undo_above(db, settings, PROVEN, now)
        db.run(blocks.CUT, height=-1)
        meta.put(db, meta.Key.READ_AT, "0")
