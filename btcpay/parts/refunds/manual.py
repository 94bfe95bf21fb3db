"""The merchant says which output was a refund, if none pays exactly its sum."""

from datetime import datetime
from typing import Any, NamedTuple

from btcpay.parts.refunds import actions, blocks, queries
from btcpay.parts.refunds.kinds import RESOURCE
from btcpay.parts.refunds.models import Refund, RefundOutput
from btcpay.settings.settings import Settings
from btcpay.values.errors import Refused
from btcpay.values.statuses import RefundStatus
from storage.database import Database

# Outputs shown to choose from: the refund's sum less a fee, or rounded by a wallet, is among them.
MOST_SHOWN = 5


class Outpoint(NamedTuple):
    """An output of a transaction; `txid` in reversed hex."""

    txid: str
    vout: int


def read_outpoint(text: str) -> Outpoint:
    """An output as TXID:VOUT. Raises Refused (`output`)."""
    txid, _, vout = text.strip().lower().partition(":")
    is_txid = len(txid) == 64 and not set(txid) - set("0123456789abcdef")
    is_vout = vout.isascii() and vout.isdecimal() and len(vout) <= 9
    if not (is_txid and is_vout):
        raise Refused("output", "say the output as TXID:VOUT, such as 70f3...:0")
    return Outpoint(txid, int(vout))


def candidates(db: Database, refund: Refund) -> list[RefundOutput]:
    """Outputs to a ready refund's address that pay another sum, the nearest to its sum first.

    Only outputs in blocks that we did not have when the address was given.
    """
    if refund.status != RefundStatus.READY:
        return []
    there: Any = {"script": refund.script, "above_height": refund.above_height}
    near: Any = there | {"amount_sats": refund.amount_sats, "limit": MOST_SHOWN}
    outputs = [*db.rows(queries.LESS, **near), *db.rows(queries.MORE, **near)]

    def distance(output: RefundOutput) -> tuple[int, str, int]:
        difference_sats = abs(output.amount_sats - refund.amount_sats)
        return difference_sats, output.txid, output.vout

    return sorted(outputs, key=distance)[:MOST_SHOWN]


def confirm_sent(
    db: Database, settings: Settings, refund_id: str, outpoint: Outpoint, now: datetime
) -> Refund:
    """Says that this output sent the refund; that holds as long as a block has the output.

    If the same was said before, nothing changes. Raises Refused: `changed`, `output`.
    """
    with actions.lock_refund(db, refund_id) as row:
        if (row.tx_hash, row.vout) == outpoint:
            return row
        if row.status != RefundStatus.READY:
            raise Refused("changed", f"the refund is {row.status}")
        place: Any = outpoint._asdict()
        there: Any = {"script": row.script, "above_height": row.above_height}
        if db.row(queries.FREE_OUTPUT, **place, **there) is None:
            message = (
                "no block has an output of this name that came to the refund's address"
            )
            raise Refused("output", f"{message}, and that is no refund so far")
        named: Any = {"named_txid": outpoint.txid, "named_vout": outpoint.vout}
        if db.run(queries.NAME_OUTPUT, id=row.id, **named) != 1:
            raise Refused("changed", "the refund has changed meanwhile")
        blocks.decide_again(db, settings, [row.script or ""], now)
        return RESOURCE.find(db, refund_id)
