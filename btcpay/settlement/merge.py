"""The outputs of an address after a scan: the known ones joined with its news. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from btcpay.settlement.values import Output, Scan, SeenOutput


def merge(known: Sequence[Output], scan: Scan, now: datetime) -> list[Output]:
    """The outputs of the address after this scan; `now` is when they are stored.

    1. What a block proves stands: it is in that block, whatever anybody says. Only a chain with
       more work takes it back.
    2. What is seen for the first time was first seen when the scan was made.
    3. What waits and is not shown has vanished, when the list was whole and every block is read.
       It is there again when it is shown again.
    4. A transaction whose inputs a block has spent otherwise never comes, whatever a mempool shows,
       until it is in a block itself, or the block with the spend is undone.
    5. What spends a coin of something seen before, and pays the address no less, replaces it, and
       was seen as early: a fee that is raised makes nobody late.
    6. Nothing was seen, and nothing has vanished, after now: a clock that was ahead makes nothing
       late, and holds nothing, once it is set right.
    """
    before = {output.outpoint: output for output in known}
    for seen in scan.waiting or ():
        old = before.get(seen.outpoint)
        before[seen.outpoint] = _waiting(old, seen, scan)
    if scan.misses and scan.waiting is not None:
        shown = {seen.outpoint for seen in scan.waiting}
        for outpoint, output in before.items():
            if outpoint not in shown and not output.block and not output.vanished:
                before[outpoint] = replace(output, vanished_at=scan.asked_at)
    for outpoint, output in before.items():
        if output.txid in scan.replaced and not output.block:
            vanished_at = output.vanished_at or scan.asked_at
            before[outpoint] = replace(
                output, vanished_at=vanished_at, replaced_height=scan.replaced[output.txid]
            )
    for seen in scan.confirmed:
        before[seen.outpoint] = _confirmed(before.get(seen.outpoint), seen, scan)
    replaces_at = _replaces_at(known, scan)
    for outpoint, output in before.items():
        if earlier := replaces_at.get(output.txid):
            first_seen_at = min(output.first_seen_at, earlier)
            before[outpoint] = replace(output, first_seen_at=first_seen_at)
    for outpoint, height in scan.spent.items():
        if outpoint in before:
            before[outpoint] = replace(before[outpoint], spent_height=height)
    return [_not_after(output, now) for output in before.values()]


def _waiting(old: Output | None, seen: SeenOutput, scan: Scan) -> Output:
    if old is None:
        new = Output(seen.txid, seen.vout, seen.amount_sats, scan.asked_at, seen_waiting=True)
        return replace(new, inputs=seen.inputs)
    # The block that has it may have been read while the mempool was asked.
    old = replace(old, first_seen_at=min(old.first_seen_at, scan.asked_at))
    if old.block or old.replaced_height is not None:
        return old
    return replace(old, amount_sats=seen.amount_sats, inputs=seen.inputs, vanished_at=None)


def _confirmed(old: Output | None, seen: SeenOutput, scan: Scan) -> Output:
    known = old or Output(seen.txid, seen.vout, seen.amount_sats, scan.asked_at)
    return replace(
        known,
        amount_sats=seen.amount_sats,
        block=seen.block,
        position=seen.position,
        inputs=(),
        vanished_at=None,
        replaced_height=None,
    )


def _replaces_at(known: Sequence[Output], scan: Scan) -> dict[str, datetime]:
    """By txid of what is shown, when the first of what it replaces was seen."""
    old = [output for output in known if output.inputs and not output.block]
    shown = (*(scan.waiting or ()), *scan.confirmed)
    first_at: dict[str, datetime] = {}
    spenders: dict[str, set[str]] = {}
    for was in old:
        first_at[was.txid] = min(first_at.get(was.txid, was.first_seen_at), was.first_seen_at)
        for coin in was.inputs:
            spenders.setdefault(coin, set()).add(was.txid)
    old_sats, sats, found = _sats(old), _sats(shown), {}
    for txid, inputs in {seen.txid: seen.inputs for seen in shown}.items():
        replaced = set[str]().union(*(spenders.get(coin, ()) for coin in inputs)) - {txid}
        times = [first_at[one] for one in replaced if old_sats[one] <= sats[txid]]
        if times:
            found[txid] = min(times)
    return found


def _sats(outputs: Sequence[Output | SeenOutput]) -> Counter[str]:
    """The satoshis that each transaction pays to the address, by its txid."""
    found: Counter[str] = Counter()
    for output in outputs:
        found[output.txid] += output.amount_sats
    return found


def _not_after(output: Output, now: datetime) -> Output:
    vanished_at = output.vanished_at and min(output.vanished_at, now)
    return replace(output, first_seen_at=min(output.first_seen_at, now), vanished_at=vanished_at)
