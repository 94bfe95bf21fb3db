"""Settlement: an invoice, what was known of its address and a scan in, what follows out. Pure.

The check writes what `settle` says. Pages, command line and API show what `stored_verdict` says of
what was written. The rules in words are in docs/developers/settlement.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from btcpay.settlement.bound import bounded
from btcpay.settlement.decide import came_in_time, decide, required_sats
from btcpay.settlement.merge import merge
from btcpay.settlement.values import Invoice, Output, Receipt, Rules, Scan, Verdict

# An end waits no longer than this for what cannot be had: a whole list, another source's word.
HELD_AT_MOST = timedelta(days=1)


@dataclass(frozen=True)
class Change:
    """An output as it was known, None for a new one, and as it is known now."""

    before: Output | None
    after: Output

    @property
    def kind(self) -> str | None:
        """Its name in the invoice's history; None where that leaves it out."""
        before, after = self.before, self.after
        if before is None:
            return "seen"
        if before.vanished != after.vanished:
            return "vanished" if after.vanished else "seen again"
        if before.block != after.block:
            return "moved"
        if before.spent_height != after.spent_height:
            return "spent"
        return None


@dataclass(frozen=True)
class Outcome:
    """The consequences of a scan.

    `payments` are to be made; `settling` are the transactions of earlier payments that settle the
    invoice now. `forgotten`: sightings that were known, and are not kept.
    """

    verdict: Verdict
    changes: Sequence[Change]
    forgotten: Sequence[Output]
    payments: Sequence[Receipt]
    settling: Sequence[str]


def settle(
    invoice: Invoice, known: Sequence[Output], scan: Scan, rules: Rules, now: datetime
) -> Outcome:
    """All that follows from news of an invoice's address.

    1. Nothing is gone, and nothing ends, because a list that may be cut does not show it; for a day
       after the deadline: whoever keeps the list long must not keep the invoice open for ever.
    2. What was known is merged with what is new.
    3. Of what a mempool shows only so much is kept.
    4. What was seen in time and has vanished lately keeps the invoice open, where it would be
       enough if it came again.
    """
    ended_at = invoice.expires_at
    if scan.is_cut and not (ended_at and scan.asked_at - HELD_AT_MOST >= ended_at):
        scan = replace(scan, misses=False, ends_at=None)
    merged = merge(known, scan, now)
    outputs = bounded(merged, invoice.amount_sats)
    kept = {output.outpoint for output in outputs}
    ends_at = None if _is_held(invoice, outputs, scan, rules) else scan.ends_at
    verdict = decide(invoice, outputs, scan.tip_height, ends_at, rules, now)
    before = {output.outpoint: output for output in known}
    changes = [
        Change(before.get(output.outpoint), output)
        for output in merged
        if output.outpoint in kept or output.outpoint in before
    ]
    settles = {output.txid: output.settles for output in known if output.credited}
    return Outcome(
        verdict=verdict,
        changes=[change for change in changes if change.after != change.before],
        forgotten=[output for output in known if output.outpoint not in kept],
        payments=[receipt for receipt in verdict.receipts if receipt.txid not in settles],
        settling=[r.txid for r in verdict.receipts if r.settles and not settles.get(r.txid, True)],
    )


def _is_held(invoice: Invoice, outputs: Sequence[Output], scan: Scan, rules: Rules) -> bool:
    """True where enough came in time, outputs included that have vanished and may come back."""
    sum_sats = sum(
        output.amount_sats
        for output in outputs
        if came_in_time(output, invoice)
        and (not output.vanished_at or _may_come_again(output, output.vanished_at, scan, rules))
    )
    return sum_sats >= required_sats(invoice.amount_sats, rules.tolerance_percent)


def _may_come_again(output: Output, vanished_at: datetime, scan: Scan, rules: Rules) -> bool:
    """True while only one look, or looks in too short a time, say that it is gone.

    An explorer may have dropped from its mempool what others keep, and miners mine.
    """
    if output.replaced_height is not None:
        return False
    return scan.asked_at <= vanished_at or scan.asked_at - vanished_at < rules.gone_after


def stored_verdict(
    invoice: Invoice, known: Sequence[Output], tip_height: int, rules: Rules, now: datetime
) -> Verdict:
    """The verdict on what is stored, between two scans: nothing becomes a payment, nothing ends."""
    return decide(invoice, known, tip_height, None, rules, now, credited_only=True)
