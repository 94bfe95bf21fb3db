"""What we know of an address after a scan: what was known joined with what was seen. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from btcpay.settlement.values import Output, SeenOutput


def merge(
    known: Sequence[Output], seen: Sequence[SeenOutput], tip_height: int, now: datetime
) -> list[Output]:
    """What we know after a complete scan of the address, begun `now` at this tip.

    1. What is seen for the first time was first seen `now`; nothing was seen later than that, so
       that a clock which was ahead makes nothing late once it is set right.
    2. A payment stands as it is: only positive evidence of a reorganisation undoes it.
    3. What waited or was only said to be confirmed, and is not shown now, has vanished.
    4. What was proven to be in a block, and is shown in none or not at all now, is doubted: only
       evidence undoes it, or another block that is proven.
    5. A spend is believed only from the coin's proven block to the tip; any other changes nothing.
       A block may have come since the tip was asked.
    """
    fresh = {output.outpoint: output for output in _believed(known, seen, tip_height)}
    merged = [_after_scan(output, fresh.pop(output.outpoint, None)) for output in known]
    return [replace(o, first_seen_at=min(o.first_seen_at, now)) for o in merged] + [
        Output(
            txid=output.txid,
            vout=output.vout,
            amount_sats=output.amount_sats,
            first_seen_at=now,
            block=output.block,
            spent_height=output.spent_height,
            seen_waiting=output.block is None,
        )
        for output in fresh.values()
    ]


def _after_scan(output: Output, seen: SeenOutput | None) -> Output:
    if seen and output.credited:
        return replace(output, spent_height=seen.spent_height)
    if seen and output.proven and seen.block is None:
        return replace(output, doubted=True)
    if seen:
        is_there_still = output.block == seen.block
        return replace(
            output,
            first_seen_at=_first_seen_at(output, seen),
            amount_sats=seen.amount_sats,
            coinbase=output.coinbase and output.proven and is_there_still,
            proven=output.proven and is_there_still,
            position=output.position if is_there_still else None,
            block=seen.block,
            spent_height=seen.spent_height,
            vanished=False,
            doubted=False,
        )
    if output.credited:
        return output
    if output.proven:
        return replace(output, doubted=True)
    return replace(output, block=None, vanished=True)


def _first_seen_at(output: Output, seen: SeenOutput) -> datetime:
    """Not after the time of a block that was proven: a reorganisation makes nothing late."""
    if output.proven and output.block and output.block != seen.block:
        return min(output.first_seen_at, output.block.mined_at)
    return output.first_seen_at


def some_vanished(known: Sequence[Output], merged: Sequence[Output]) -> bool:
    """Whether a scan misses money that waited: then it does not expire the invoice as well.

    An explorer may be behind, or change its list between two pages; the next scan decides.
    """
    waiting = {output.outpoint for output in known if not output.vanished}
    return any(output.vanished and output.outpoint in waiting for output in merged)


def _believed(
    known: Sequence[Output], seen: Sequence[SeenOutput], tip_height: int
) -> Iterator[SeenOutput]:
    before = {output.outpoint: output for output in known if not output.vanished}
    for output in seen:
        old = before.get(output.outpoint)
        first_height = old.block.height if old and old.block and old.proven else 0
        if output.spent_height is None or first_height <= output.spent_height <= tip_height:
            yield output
        else:
            yield replace(output, spent_height=old.spent_height if old else None)
