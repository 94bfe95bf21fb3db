"""Settlement: an invoice, what was known of its address and a scan in, what follows out. Pure.

The check writes what `settle` says. Pages, command line and API show what `stored_verdict` says of
what was written. The rules in words are in docs/settlement.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from btcpay.settlement.decide import decide
from btcpay.settlement.merge import merge, some_vanished
from btcpay.settlement.proofs import mark_proven, proven_outpoints
from btcpay.settlement.values import Invoice, Output, Receipt, Rules, Scan, Verdict


@dataclass(frozen=True)
class Change:
    """An output as it was known, None for a new one, and as it is known now."""

    before: Output | None
    after: Output

    @property
    def kind(self) -> str | None:
        """How the invoice's history names it; None for what it does not tell."""
        before, after = self.before, self.after
        if before is None:
            return "seen"
        if after.vanished:
            return "vanished"
        if before.vanished:
            return "seen again"
        if before.block != after.block:
            return "moved"
        if before.spent_height != after.spent_height:
            return "unspent" if after.spent_height is None else "spent"
        return None

    @property
    def has_moved(self) -> bool | None:
        """True when the coin has moved since, False when it has not after all; None: no news."""
        was, is_spent = (
            one is not None and one.spent_height is not None for one in (self.before, self.after)
        )
        return None if was == is_spent else is_spent


@dataclass(frozen=True)
class Outcome:
    """What follows from a scan.

    `payments` are to be made; `settling` are the transactions of earlier payments that settle the
    invoice now.
    """

    verdict: Verdict
    changes: Sequence[Change]
    payments: Sequence[Receipt]
    settling: Sequence[str]


def settle(
    invoice: Invoice, known: Sequence[Output], scan: Scan, rules: Rules, now: datetime
) -> Outcome:
    """All that follows from a scan of an invoice's address.

    1. What was known is merged with what was seen.
    2. What no proof of this scan bears out does not count.
    3. A scan that misses money does not expire the invoice as well.
    4. What is doubted is kept as it was known.
    """
    merged = merge(known, scan.outputs, scan.tip_height, scan.asked_at)
    proven = proven_outpoints(merged, scan.proofs)
    outputs = [
        mark_proven(output, scan.proofs[output.txid]) if output.outpoint in proven else output
        for output in merged
    ]
    counted = [
        output
        if output.credited or not output.block or output.outpoint in proven
        else replace(output, doubted=True)
        for output in outputs
    ]
    ends_at = None if some_vanished(known, outputs) else scan.ends_at
    verdict = decide(invoice, counted, scan.tip_height, ends_at, rules, now)
    settles = {output.txid: output.settles for output in known if output.credited}
    return Outcome(
        verdict=verdict,
        changes=_changes(known, outputs),
        payments=[receipt for receipt in verdict.receipts if receipt.txid not in settles],
        settling=[r.txid for r in verdict.receipts if r.settles and not settles.get(r.txid, True)],
    )


def stored_verdict(
    invoice: Invoice,
    known: Sequence[Output],
    tip_height: int,
    scanned_at: datetime | None,
    rules: Rules,
    now: datetime,
) -> Verdict:
    """The verdict on what is stored, between two scans.

    What is stored as confirmed and is no payment was not deep enough, or not proven: it waits.
    """
    outputs = [replace(output, doubted=not output.credited) for output in known]
    return decide(invoice, outputs, tip_height, scanned_at, rules, now)


def _changes(known: Sequence[Output], outputs: Sequence[Output]) -> list[Change]:
    before = {output.outpoint: output for output in known}
    changes = [Change(before.get(output.outpoint), output) for output in outputs]
    return [one for one in changes if one.after != one.before and not one.after.doubted]
