"""Merges the known outputs of an address with a scan, which is new data about it. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from btcpay.settlement.values import Output, Scan, SeenOutput

# After this time the inputs of a vanished output are deleted, and its replacement is not
# searched for any more.
HISTORY_AFTER = timedelta(hours=1)


def merge(known_outputs: Sequence[Output], scan: Scan, now: datetime) -> list[Output]:
    """Returns all outputs to the address, as they are known after the scan.

    1. An output that is proven to be in a block stays there, whatever a mempool shows.
       Only a reorganisation removes it.
    2. A new output was first seen at the time of the scan.
    3. An unconfirmed output that the mempool does not show has vanished, if the
       mempool's list is complete and every block is read. It returns as soon as a
       mempool shows it again.
    4. A transaction has vanished if a block has another transaction that spends one of
       its inputs. It returns only if it is mined itself, or if that block is undone.
    5. A transaction replaces an earlier one if it spends one of the same coins and pays
       the address at least as much. The new outputs count as first seen when the old
       transaction was, so that a fee bump makes no payment late.
    6. Times in the future are set to `now`. They were stored while our clock was ahead.
    """
    outputs = {output.outpoint: output for output in known_outputs}
    missing = _missing_outpoints(known_outputs, scan)
    for sighting in scan.waiting or ():
        old = outputs.get(sighting.outpoint)
        outputs[sighting.outpoint] = _merge_waiting(old, sighting, scan)
    for outpoint, output in outputs.items():
        is_gone = outpoint in missing or output.txid in scan.replaced
        if is_gone and not output.block:
            outputs[outpoint] = _vanish(output, scan)
    # The blocks come last, since their proof counts more than a mempool (rule 1).
    for sighting in scan.confirmed:
        old = outputs.get(sighting.outpoint)
        outputs[sighting.outpoint] = _merge_confirmed(old, sighting, scan)
    replaced_times = _replaced_times(known_outputs, scan)
    merged = []
    for outpoint, output in outputs.items():
        replaced_at = replaced_times.get(output.txid, now)
        spent_height = scan.spent.get(outpoint, output.spent_height)
        merged.append(_correct(output, replaced_at, spent_height, now))
    return merged


def _correct(
    output: Output,
    replaced_at: datetime,
    spent_height: int | None,
    now: datetime,
) -> Output:
    """Returns the output with this `spent_height`, and with corrected times.

    Times after `now` become `now`. The output counts as first seen at `replaced_at` if
    that is earlier. It is the time when the replaced transaction was first seen, or
    `now` if there is none.
    """
    vanished_at = output.vanished_at
    if vanished_at is not None:
        vanished_at = min(vanished_at, now)
    return replace(
        output,
        first_seen_at=min(output.first_seen_at, replaced_at, now),
        vanished_at=vanished_at,
        spent_height=spent_height,
    )


def _missing_outpoints(
    known_outputs: Sequence[Output],
    scan: Scan,
) -> set[tuple[str, int]]:
    """Returns the outpoints of known outputs that the mempool does not show.

    Returns an empty set if the mempool was not queried, or if blocks are unread.
    """
    if scan.waiting is None or not scan.absent_is_gone:
        return set()
    known = {output.outpoint for output in known_outputs}
    shown = {sighting.outpoint for sighting in scan.waiting}
    return known - shown


def _vanish(output: Output, scan: Scan) -> Output:
    """Returns the output as vanished since the scan, or since earlier if it was already."""
    return replace(
        output,
        vanished_at=output.vanished_at or scan.asked_at,
        replaced_height=scan.replaced.get(output.txid, output.replaced_height),
    )


def _new_output(sighting: SeenOutput, scan: Scan) -> Output:
    return Output(
        sighting.txid,
        sighting.vout,
        sighting.amount_sats,
        first_seen_at=scan.asked_at,
    )


def _merge_waiting(old: Output | None, sighting: SeenOutput, scan: Scan) -> Output:
    """Returns the output as the mempool shows it. `old` is its known state or None."""
    if old is None:
        return replace(
            _new_output(sighting, scan),
            inputs=sighting.inputs,
            feerate=sighting.feerate,
            seen_waiting=True,
        )
    # A block may have been read during the request to the mempool, and have set the time.
    old = replace(old, first_seen_at=min(old.first_seen_at, scan.asked_at))
    is_decided_by_block = old.block is not None or old.replaced_height is not None
    if is_decided_by_block:
        return old
    return replace(
        old,
        amount_sats=sighting.amount_sats,
        inputs=sighting.inputs,
        feerate=sighting.feerate or old.feerate,
        vanished_at=None,
    )


def _merge_confirmed(old: Output | None, sighting: SeenOutput, scan: Scan) -> Output:
    """Returns the output as a block confirms it. `old` is its known state or None."""
    return replace(
        old or _new_output(sighting, scan),
        amount_sats=sighting.amount_sats,
        block=sighting.block,
        position=sighting.position,
        inputs=(),
        vanished_at=None,
        replaced_height=None,
    )


def _replaced_times(known_outputs: Sequence[Output], scan: Scan) -> dict[str, datetime]:
    """Returns for each new transaction when the one that it replaces was first seen.

    The keys are the txids of the scan's transactions that replace others. If one
    replaces several, its value is the time when the earliest of them was first seen.
    """
    old = [output for output in known_outputs if output.inputs and not output.block]
    new = [*(scan.waiting or ()), *scan.confirmed]
    spenders = _spenders_by_coin(old)
    first_seen = _first_seen_by_txid(old)
    old_sats = _sats_by_txid(old)
    new_sats = _sats_by_txid(new)
    inputs_by_txid = {output.txid: output.inputs for output in new}
    replaced_times: dict[str, datetime] = {}
    for txid, inputs in inputs_by_txid.items():
        conflicting_txids: set[str] = set()
        for coin in inputs:
            conflicting_txids |= spenders.get(coin, set())
        conflicting_txids.discard(txid)
        times = [
            first_seen[old_txid]
            for old_txid in conflicting_txids
            if new_sats[txid] >= old_sats[old_txid]
        ]
        if times:
            replaced_times[txid] = min(times)
    return replaced_times


def _spenders_by_coin(outputs: Sequence[Output]) -> dict[str, set[str]]:
    """Returns the txids of the transactions that spend each coin ("txid:vout")."""
    spenders: dict[str, set[str]] = {}
    for output in outputs:
        for coin in output.inputs:
            spenders.setdefault(coin, set()).add(output.txid)
    return spenders


def _first_seen_by_txid(outputs: Sequence[Output]) -> dict[str, datetime]:
    """Returns when each transaction was first seen: the earliest time of its outputs."""
    first_seen: dict[str, datetime] = {}
    for output in outputs:
        earliest = first_seen.get(output.txid, output.first_seen_at)
        first_seen[output.txid] = min(earliest, output.first_seen_at)
    return first_seen


def _sats_by_txid(outputs: Sequence[SeenOutput]) -> Counter[str]:
    """Returns the satoshis that each transaction pays to the address, by txid."""
    sats: Counter[str] = Counter()
    for output in outputs:
        sats[output.txid] += output.amount_sats
    return sats
