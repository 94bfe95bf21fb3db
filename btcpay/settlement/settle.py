"""Settles an invoice: its known outputs and a scan go in, the consequences come out. Pure.

The check stores the outcome of `settle`. Between scans pages, command line and API show the verdict
on the stored outputs, which makes no payment and ends nothing. docs/developers/settlement.md has
the rules in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from btcpay.settlement.decide import came_in_time, decide, required_sats
from btcpay.settlement.merge import bound_outputs, merge
from btcpay.settlement.values import Invoice, Output, Receipt, Rules, Scan, Verdict

# The longest that an invoice's end waits for an answer that may never come, such as a complete list
# of the mempool or a second source's word: no source may hold an invoice open for ever.
HELD_AT_MOST = timedelta(days=1)


@dataclass(frozen=True)
class Change:
    """An output as it was known, None for a new one, and as it is known now."""

    before: Output | None
    after: Output

    @property
    def kind(self) -> str | None:
        """The change's name in the invoice's history; None if it is not listed there."""
        before = self.before
        after = self.after
        if before is None:
            return "seen"
        if bool(before.vanished_at) != bool(after.vanished_at):
            if after.vanished_at:
                return "vanished"
            return "seen again"
        if before.block != after.block:
            return "moved"
        if before.spent_height != after.spent_height:
            return "spent"
        return None


@dataclass(frozen=True)
class Outcome:
    """The consequences of a scan.

    `payments`: those to be made. `settling`: the txids of earlier payments that settle the invoice
    now. `forgotten`: known outputs that are not kept.
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

    1. Where the mempool's list may be cut, an output that it does not show is not gone, and the
       invoice does not end, up to a day after its deadline.
    2. The known outputs are merged with the scan.
    3. Of the outputs in no block a bounded number is kept.
    4. The invoice stays open while the outputs that came in time would be enough if those of them
       that vanished lately came back.
    """
    ended_at = invoice.expires_at
    if scan.is_cut and not (ended_at and scan.asked_at - HELD_AT_MOST >= ended_at):
        scan = replace(scan, absent_is_gone=False, ends_at=None)
    merged = merge(known, scan, now)
    outputs = bound_outputs(merged, invoice.amount_sats)
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
        payments=[
            receipt for receipt in verdict.receipts if receipt.txid not in settles
        ],
        settling=[
            r.txid
            for r in verdict.receipts
            if r.settles and not settles.get(r.txid, True)
        ],
    )


def _is_held(
    invoice: Invoice, outputs: Sequence[Output], scan: Scan, rules: Rules
) -> bool:
    """True if enough came in time, counting vanished outputs that may come back."""
    in_time = [
        one
        for one in outputs
        if came_in_time(one, invoice) and _may_pay(one, scan, rules)
    ]
    sum_sats = sum(output.amount_sats for output in in_time)
    return sum_sats >= required_sats(invoice.amount_sats, rules.tolerance_percent)


def _may_pay(output: Output, scan: Scan, rules: Rules) -> bool:
    """True while at most one look at the mempool, or looks too close together, missed it.

    An explorer may have dropped a transaction that other nodes keep and miners will mine.
    """
    if (gone_at := output.vanished_at) is None:
        return True
    is_recent = scan.asked_at <= gone_at or scan.asked_at - gone_at < rules.gone_after
    return is_recent and output.replaced_height is None
