"""The known outputs of an address merged with a scan's, and a bound on invented ones. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from btcpay.settlement.values import Output, Scan, SeenOutput

MOST_KEPT = 100  # outputs that wait, and as many that have vanished lately
# After this time a vanished output is mere history, and its replacement is not looked for.
HISTORY_AFTER = timedelta(hours=1)


def merge(known: Sequence[Output], scan: Scan, now: datetime) -> list[Output]:
    """The outputs of the address after this scan; `now` is when they are stored.

    1. An output that a block proves is in that block, whatever a mempool shows. Only a chain with
       more work takes it back.
    2. An output that is new was first seen at the time of the scan.
    3. A waiting output that the mempool does not show has vanished, if the list was whole and every
       block is read. It is back as soon as a mempool shows it again.
    4. A transaction whose inputs another one in a block has spent has vanished, whatever a mempool
       shows, until it is in a block itself, or the block with the spend is undone.
    5. A transaction that spends a coin of an earlier one, and pays the address no less, replaces
       it, and counts as seen at the same time: raising a fee makes nobody late.
    6. No time is later than now. If our clock was ahead and has been set right, nothing is late
       because of it, and nothing is held open.
    """
    found = {output.outpoint: output for output in known}
    missing = set(found) if scan.absent_is_gone and scan.waiting is not None else set()
    missing -= {seen.outpoint for seen in scan.waiting or ()}
    for seen in scan.waiting or ():
        found[seen.outpoint] = _waiting(found.get(seen.outpoint), seen, scan)
    for outpoint, output in found.items():
        if not output.block and (outpoint in missing or output.txid in scan.replaced):
            found[outpoint] = replace(
                output,
                vanished_at=output.vanished_at or scan.asked_at,
                replaced_height=scan.replaced.get(output.txid, output.replaced_height),
            )
    for seen in scan.confirmed:
        found[seen.outpoint] = _confirmed(found.get(seen.outpoint), seen, scan)
    replaces_at = _replaces_at(known, scan)
    return [
        replace(
            output,
            first_seen_at=min(
                output.first_seen_at, replaces_at.get(output.txid, now), now
            ),
            vanished_at=output.vanished_at and min(output.vanished_at, now),
            spent_height=scan.spent.get(outpoint, output.spent_height),
        )
        for outpoint, output in found.items()
    ]


def _new(seen: SeenOutput, scan: Scan) -> Output:
    return Output(seen.txid, seen.vout, seen.amount_sats, first_seen_at=scan.asked_at)


def _waiting(old: Output | None, seen: SeenOutput, scan: Scan) -> Output:
    if old is None:
        return replace(_new(seen, scan), inputs=seen.inputs, seen_waiting=True)
    # The output's block may have been read while the mempool was asked.
    old = replace(old, first_seen_at=min(old.first_seen_at, scan.asked_at))
    if old.block or old.replaced_height is not None:
        return old
    return replace(
        old, amount_sats=seen.amount_sats, inputs=seen.inputs, vanished_at=None
    )


def _confirmed(old: Output | None, seen: SeenOutput, scan: Scan) -> Output:
    return replace(
        old or _new(seen, scan),
        amount_sats=seen.amount_sats,
        block=seen.block,
        position=seen.position,
        inputs=(),
        vanished_at=None,
        replaced_height=None,
    )


def _replaces_at(known: Sequence[Output], scan: Scan) -> dict[str, datetime]:
    """For each shown transaction (by txid), when the first one that it replaces was seen."""
    old = [output for output in known if output.inputs and not output.block]
    shown = (*(scan.waiting or ()), *scan.confirmed)
    first_at: dict[str, datetime] = {}
    spenders: dict[str, set[str]] = {}
    for was in old:
        first_at[was.txid] = min(
            first_at.get(was.txid, was.first_seen_at), was.first_seen_at
        )
        for coin in was.inputs:
            spenders.setdefault(coin, set()).add(was.txid)
    old_sats = _sats(old)
    sats = _sats(shown)
    found = {}
    for txid, inputs in {seen.txid: seen.inputs for seen in shown}.items():
        replaced = set[str]().union(*(spenders.get(coin, ()) for coin in inputs)) - {
            txid
        }
        times = [first_at[each] for each in replaced if old_sats[each] <= sats[txid]]
        if times:
            found[txid] = min(times)
    return found


def _sats(outputs: Sequence[SeenOutput]) -> Counter[str]:
    """The satoshis that each transaction pays to the address, by its txid."""
    found: Counter[str] = Counter()
    for output in outputs:
        found[output.txid] += output.amount_sats
    return found


def bound_outputs(outputs: Sequence[Output], amount_sats: int) -> list[Output]:
    """All outputs that are in a block, and the first of the others in this order.

    So there is a bound on the sightings that a liar can invent.

    1. Outputs of at least a hundredth of the amount: to fill all places with these costs the
    amount. 2. Outputs that were seen earlier: later inventions push none of them out. 3. Of those
    seen at the same time, the nearest to the amount.
    """

    def order(output: Output) -> tuple[bool, datetime, int]:
        matters = output.amount_sats * MOST_KEPT >= amount_sats
        return not matters, output.first_seen_at, abs(output.amount_sats - amount_sats)

    seen = sorted((output for output in outputs if not output.block), key=order)
    waiting = [output for output in seen if not output.vanished_at][:MOST_KEPT]
    vanished = [output for output in seen if output.vanished_at][:MOST_KEPT]
    kept = {output.outpoint for output in (*waiting, *vanished)}
    return [output for output in outputs if output.block or output.outpoint in kept]
