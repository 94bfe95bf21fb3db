"""Lets the merchant name the output that sent a refund.

This is needed if no output pays exactly the refund's sum.
"""

from datetime import datetime
from typing import Any, NamedTuple

from btcpay.parts.refunds import queries, steps
from btcpay.parts.refunds.apply import decide_again
from btcpay.parts.refunds.kinds import RESOURCE
from btcpay.parts.refunds.models import Refund, RefundOutput
from btcpay.settings.settings import Settings
from btcpay.values.errors import ChangeRefused
from btcpay.values.statuses import RefundStatus
from storage.database import Database

# The maximum number of outputs to choose from. If the wallet has subtracted a fee or
# rounded, the output is one of those nearest to the refund's sum.
MOST_CANDIDATES = 5
HEX_DIGITS = set("0123456789abcdef")


class Outpoint(NamedTuple):
    """A reference to an output: the txid in reversed hex, and the output's number."""

    txid: str
    vout: int


def read_outpoint(text: str) -> Outpoint:
    """Parses an outpoint of the form TXID:VOUT.

    Raises ChangeRefused with the code `output` if the text has another form.
    """
    txid, _, vout = text.strip().lower().partition(":")
    is_txid = len(txid) == 64 and set(txid) <= HEX_DIGITS
    is_vout = vout.isascii() and vout.isdecimal() and len(vout) <= 9
    if not (is_txid and is_vout):
        raise ChangeRefused("output", "say the output as TXID:VOUT, such as 70f3...:0")
    return Outpoint(txid, int(vout))


def candidates(db: Database, refund: Refund) -> list[RefundOutput]:
    """Returns the outputs from which the merchant can choose the one that sent the refund.

    These outputs pay to the refund's address, have sent no refund, and are in blocks
    that were not known yet when the payer gave the address. The output with the nearest
    sum comes first. The result has at most MOST_CANDIDATES outputs. It is empty if the
    refund is not ready to be sent.
    """
    if refund.status != RefundStatus.READY:
        return []
    search: Any = {
        "script": refund.script,
        "above_height": refund.above_height,
        "amount_sats": refund.amount_sats,
        "limit": MOST_CANDIDATES,
    }
    outputs = [*db.rows(queries.LESS, **search), *db.rows(queries.MORE, **search)]

    def distance(output: RefundOutput) -> tuple[int, str, int]:
        difference_sats = abs(output.amount_sats - refund.amount_sats)
        return difference_sats, output.txid, output.vout

    return sorted(outputs, key=distance)[:MOST_CANDIDATES]


def confirm_sent(
    db: Database,
    settings: Settings,
    refund_id: str,
    outpoint: Outpoint,
    now: datetime,
) -> Refund:
    """Stores that this output sent the refund, and returns the refund.

    From then on, the refund counts as sent as long as a block contains the output. If
    the output has sent this refund already, nothing changes.

    - Raises ChangeRefused with the code `changed` if the refund is not ready to be sent.
    - Raises ChangeRefused with the code `output` if no block has such an output to the
      refund's address, or if the output has sent another refund.
    - Raises CommandError if no refund has this id.
    """
    with steps.lock_refund(db, refund_id) as row:
        if (row.tx_hash, row.vout) == outpoint:
            return row
        if row.status != RefundStatus.READY:
            raise ChangeRefused("changed", f"the refund is {row.status}")
        _require_free_output(db, row, outpoint)
        updated_rows = db.run(
            queries.NAME_OUTPUT,
            id=row.id,
            named_txid=outpoint.txid,
            named_vout=outpoint.vout,
        )
        if updated_rows != 1:
            raise ChangeRefused("changed", "the refund has changed meanwhile")
        # The decision marks the refund as sent, since the output is named now.
        decide_again(db, settings, [row.script or ""], now)
        return RESOURCE.find(db, refund_id)


def _require_free_output(db: Database, refund: Refund, outpoint: Outpoint) -> None:
    """Raises ChangeRefused with the code `output` if this output cannot be the refund."""
    output = db.get_or_none(
        queries.FREE_OUTPUT,
        txid=outpoint.txid,
        vout=outpoint.vout,
        script=refund.script or "",
        above_height=refund.above_height,
    )
    if output is None:
        raise ChangeRefused(
            "output",
            "no block has an output of this name that came to the refund's address,"
            " and that is no refund so far",
        )
