"""Computes what a scan changes in an invoice, its outputs and its payments. Pure.

A scan is new data from blocks or a mempool about the invoice's address. Only the check
(`blocktill check`) stores the result of `settle`, and so creates payments and expires
invoices. The pages, the command line and the API only show the state that follows from
the stored outputs. docs/developers/settlement.md explains the rules.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from btcpay.settlement.age import came_in_time
from btcpay.settlement.bound import bound_outputs
from btcpay.settlement.decide import decide, required_sats
from btcpay.settlement.merge import merge
from btcpay.settlement.values import Invoice, Output, Receipt, Rules, Scan, Verdict

# The maximum delay of an invoice's expiry if a complete list of the mempool, or a second
# source's tip, is missing. Without this limit a source could keep an invoice open for ever.
HELD_AT_MOST = timedelta(days=1)


@dataclass(frozen=True)
class Change:
    """The state of an output before new data came (None if it is new), and afterwards."""

    before: Output | None
    after: Output

    @property
    def kind(self) -> str | None:
        """The change's name in the invoice's history; None if it is not recorded."""
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
    """The changes that a scan causes, and the invoice's new state (`verdict`).

    `changes` are the outputs to store, each as it was and as it is now. `forgotten` are
    known outputs to delete. `payments` are the payments to store. `settling` are the
    txids of stored payments that settle the invoice from now on.
    """

    verdict: Verdict
    changes: Sequence[Change]
    forgotten: Sequence[Output]
    payments: Sequence[Receipt]
    settling: Sequence[str]


def settle(
    invoice: Invoice,
    known_outputs: Sequence[Output],
    scan: Scan,
    rules: Rules,
    now: datetime,
) -> Outcome:
    """Returns the changes that a scan (new data about the invoice's address) causes.

    1. If the mempool's list may be incomplete (`scan.is_cut`), outputs that are missing
       from it do not count as vanished, and the invoice does not expire. Both rules end
       a day after the invoice's deadline.
    2. The known outputs are merged with the scan.
    3. The number of outputs in no block is limited.
    4. The invoice stays open while the outputs that came in time, including those that
       vanished recently, reach the amount.
    """
    if scan.is_cut and not _was_held_long_enough(invoice, scan):
        scan = replace(scan, absent_is_gone=False, ends_at=None)
    merged = merge(known_outputs, scan, now)
    outputs = bound_outputs(merged, invoice.amount_sats)
    ends_at = scan.ends_at
    if _is_held(invoice, outputs, scan, rules):
        ends_at = None
    verdict = decide(invoice, outputs, scan.tip_height, ends_at, rules, now)
    kept_outpoints = {output.outpoint for output in outputs}
    credited = [output for output in known_outputs if output.credited]
    return Outcome(
        verdict=verdict,
        changes=_changes(known_outputs, merged, kept_outpoints),
        forgotten=[
            output for output in known_outputs if output.outpoint not in kept_outpoints
        ],
        payments=_new_payments(credited, verdict),
        settling=_newly_settling_txids(credited, verdict),
    )


def _new_payments(credited: Sequence[Output], verdict: Verdict) -> list[Receipt]:
    """Returns the payments in the verdict that are not stored yet.

    `credited` are the outputs that belong to stored payments.
    """
    existing = {output.txid for output in credited}
    return [receipt for receipt in verdict.receipts if receipt.txid not in existing]


def _newly_settling_txids(credited: Sequence[Output], verdict: Verdict) -> list[str]:
    """Returns the txids of stored payments that settle the invoice only from now on.

    `credited` are the outputs that belong to stored payments.
    """
    not_settling = {output.txid for output in credited if not output.settles}
    return [
        receipt.txid
        for receipt in verdict.receipts
        if receipt.settles and receipt.txid in not_settling
    ]


def _was_held_long_enough(invoice: Invoice, scan: Scan) -> bool:
    """True if the scan is so late that the expiry must not be delayed any longer."""
    if invoice.expires_at is None:
        return False
    return scan.asked_at - HELD_AT_MOST >= invoice.expires_at


def _changes(
    known_outputs: Sequence[Output],
    merged: Sequence[Output],
    kept_outpoints: Set[tuple[str, int]],
) -> list[Change]:
    """Returns the changes of known outputs, and the new outputs that are stored.

    These are the new outputs whose outpoints are in `kept_outpoints`.
    """
    known = {output.outpoint: output for output in known_outputs}
    changes = []
    for output in merged:
        before = known.get(output.outpoint)
        is_stored = before is not None or output.outpoint in kept_outpoints
        if is_stored and output != before:
            changes.append(Change(before, output))
    return changes


def _is_held(
    invoice: Invoice,
    outputs: Sequence[Output],
    scan: Scan,
    rules: Rules,
) -> bool:
    """True if the invoice must not expire, since outputs that came in time may pay it.

    That is so if their sum reaches the amount. Outputs that vanished recently count
    too, since they may return.
    """
    in_time = [output for output in outputs if came_in_time(output, invoice)]
    sum_sats = sum(
        output.amount_sats for output in in_time if _may_pay(output, scan, rules)
    )
    return sum_sats >= required_sats(invoice.amount_sats, rules.tolerance_percent)


def _may_pay(output: Output, scan: Scan, rules: Rules) -> bool:
    """True unless the output was replaced, or has been missing for too long.

    A shorter absence does not matter: an explorer may have dropped a transaction that
    other nodes keep and miners will mine.
    """
    if output.vanished_at is None:
        return True
    if output.replaced_height is not None:
        return False
    absent_for = scan.asked_at - output.vanished_at
    has_just_vanished = absent_for <= timedelta()  # even if `gone_after` is zero
    return has_just_vanished or absent_for < rules.gone_after
