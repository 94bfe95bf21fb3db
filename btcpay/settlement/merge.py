"""Merges the known outputs of an address with those of a scan, and bounds invented ones. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from btcpay.settlement.values import Output, Scan, SeenOutput

# Outputs that wait, and as many that have vanished lately.
MOST_KEPT = 100
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
    6. No time is later than now. If our clock was ahead and has been set right, that makes nothing
       late, and holds nothing open.
    """
    outputs = {output.outpoint: output for output in known}
    missing = _missing(known, scan)
    for sighting in scan.waiting or ():
        old = outputs.get(sighting.outpoint)
        outputs[sighting.outpoint] = _merge_waiting(old, sighting, scan)
    for outpoint, output in outputs.items():
        is_gone = outpoint in missing or output.txid in scan.replaced
        if is_gone and not output.block:
            outputs[outpoint] = _vanish(output, scan)
    for sighting in scan.confirmed:
        old = outputs.get(sighting.outpoint)
        outputs[sighting.outpoint] = _merge_confirmed(old, sighting, scan)
    replaced_times = _replaced_times(known, scan)
    return [
        replace(
            output,
            first_seen_at=min(
                output.first_seen_at, replaced_times.get(output.txid, now), now
            ),
            vanished_at=output.vanished_at and min(output.vanished_at, now),
            spent_height=scan.spent.get(outpoint, output.spent_height),
        )
        for outpoint, output in outputs.items()
    ]


def _missing(known: Sequence[Output], scan: Scan) -> set[tuple[str, int]]:
    """The outpoints of known outputs that are gone, as the mempool does not show them."""
    if scan.waiting is None or not scan.absent_is_gone:
        return set()
    missing = {output.outpoint for output in known}
    return missing - {sighting.outpoint for sighting in scan.waiting}


def _vanish(output: Output, scan: Scan) -> Output:
    return replace(
        output,
        vanished_at=output.vanished_at or scan.asked_at,
        replaced_height=scan.replaced.get(output.txid, output.replaced_height),
    )


def _new(sighting: SeenOutput, scan: Scan) -> Output:
    return Output(
        sighting.txid, sighting.vout, sighting.amount_sats, first_seen_at=scan.asked_at
    )


def _merge_waiting(old: Output | None, sighting: SeenOutput, scan: Scan) -> Output:
    """The output after the mempool has shown it; `old`: as it was known."""
    if old is None:
        return replace(_new(sighting, scan), inputs=sighting.inputs, seen_waiting=True)
    # The output's block may have been read while the mempool was asked.
    old = replace(old, first_seen_at=min(old.first_seen_at, scan.asked_at))
    if old.block or old.replaced_height is not None:
        return old
    return replace(
        old, amount_sats=sighting.amount_sats, inputs=sighting.inputs, vanished_at=None
    )


def _merge_confirmed(old: Output | None, sighting: SeenOutput, scan: Scan) -> Output:
    """The output after a block has confirmed it; `old`: as it was known."""
    return replace(
        old or _new(sighting, scan),
        amount_sats=sighting.amount_sats,
        block=sighting.block,
        position=sighting.position,
        inputs=(),
        vanished_at=None,
        replaced_height=None,
    )


def _replaced_times(known: Sequence[Output], scan: Scan) -> dict[str, datetime]:
    """For each shown transaction (by txid), when the first one that it replaces was seen."""
    old = [output for output in known if output.inputs and not output.block]
    sightings = [*(scan.waiting or ()), *scan.confirmed]
    first_seen: dict[str, datetime] = {}
    spenders: dict[str, set[str]] = {}
    for output in old:
        earliest = first_seen.get(output.txid, output.first_seen_at)
        first_seen[output.txid] = min(earliest, output.first_seen_at)
        for coin in output.inputs:
            spenders.setdefault(coin, set()).add(output.txid)
    old_sats = _sats_by_txid(old)
    new_sats = _sats_by_txid(sightings)
    inputs_by_txid = {output.txid: output.inputs for output in sightings}
    replaced_times: dict[str, datetime] = {}
    for txid, inputs in inputs_by_txid.items():
        replaced: set[str] = set()
        for coin in inputs:
            replaced |= spenders.get(coin, set())
        replaced.discard(txid)
        times = [
            first_seen[old_txid]
            for old_txid in replaced
            if old_sats[old_txid] <= new_sats[txid]
        ]
        if times:
            replaced_times[txid] = min(times)
    return replaced_times


def _sats_by_txid(outputs: Sequence[SeenOutput]) -> Counter[str]:
    """The satoshis that each transaction pays to the address, by its txid."""
    sats: Counter[str] = Counter()
    for output in outputs:
        sats[output.txid] += output.amount_sats
    return sats


def bound_outputs(outputs: Sequence[Output], amount_sats: int) -> list[Output]:
    """All outputs that are in a block, and the first of the others in this order.

    This bounds the sightings that a liar can invent.

    1. Outputs of at least a hundredth of the amount: to fill all places with these costs the
       amount.
    2. Outputs that were seen earlier: later inventions push none of them out.
    3. If two were seen at the same time, the one nearer to the amount.
    """

    def order(output: Output) -> tuple[bool, datetime, int]:
        is_small = output.amount_sats * MOST_KEPT < amount_sats
        difference_sats = abs(output.amount_sats - amount_sats)
        return (is_small, output.first_seen_at, difference_sats)

    unconfirmed = [output for output in outputs if not output.block]
    unconfirmed.sort(key=order)
    waiting = [output for output in unconfirmed if not output.vanished_at]
    vanished = [output for output in unconfirmed if output.vanished_at]
    first = [*waiting[:MOST_KEPT], *vanished[:MOST_KEPT]]
    kept_outpoints = {output.outpoint for output in first}
    return [
        output
        for output in outputs
        if output.block or output.outpoint in kept_outpoints
    ]
