"""Explains the state of an invoice to its owner, in sentences.

They say how much was requested, how much was seen, how much is missing, and why.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from btcpay.invoices.status import Story
from btcpay.settlement.attention import REASONS
from btcpay.settlement.reason import confirmations_text
from btcpay.values.money import amount_due, full_btc_text, money_text, price_of
from btcpay.values.times import iso_ms
from storage.models import Invoice, Output

Lines = Iterator[tuple[str, str]]

_SETTLE = "`blocktill invoice settle ID --reason TEXT` accepts what came"
_DISMISS = "`blocktill invoice dismiss ID --reason TEXT` takes it off the list"
_SETTLE_OR_DISMISS = f"{_SETTLE}; {_DISMISS}"
# The owner's next step, by the reason for attention. These texts name only commands that can
# succeed: `settle` refuses a paid invoice, and an invoice that received nothing.
ADVICE = {
    "reorganised": f"it counts again once it is in a block again; {_DISMISS}",
    "paid_late": _SETTLE_OR_DISMISS,
    "short": _SETTLE_OR_DISMISS,
    "too_much": f"the invoice is paid; {_DISMISS}",
    "after_cancellation": _SETTLE_OR_DISMISS,
    "dust_missing": _SETTLE_OR_DISMISS,
    "vanished": f"nothing came that could be accepted: ask the payer; {_DISMISS}",
    "refunded_twice": f"ask the payer for what was sent a second time; {_DISMISS}",
    "older_coin": f"see whether the customer sent it, or it was there before the order; {_DISMISS}",
}


def explanation(story: Story, next_look: str) -> Lines:
    """Yields (heading, sentence) pairs, in the order in which readers need them.

    A pair with the heading "" continues the pair before it. `next_look` is the sentence
    that says when the mempool will be queried again.
    """
    row = story.row
    yield "invoice", f"{row.id}, {row.status}"
    yield from _amount_lines(row)
    yield from _received_lines(story)
    yield from _reason_lines(story)
    checked_at = "never"
    if story.checked_ms:
        checked_at = iso_ms(story.checked_ms)
    yield "checked", checked_at
    yield "mempool", next_look
    yield "history", f"made {iso_ms(row.created_ms)}"
    for event in story.events:
        facts = _facts(event.kind, event.detail)
        yield "", f"{iso_ms(event.happened_ms)} {event.kind}{facts}"


def _amount_lines(row: Invoice) -> Lines:
    """Yields the amount of the invoice, its deadline, its purpose and its address."""
    amount, currency = amount_due(row)
    yield (
        "asked for",
        f"{row.amount_sats} satoshis ({full_btc_text(row.amount_sats)} BTC), which were"
        f" {money_text(amount, currency)} at {money_text(price_of(row), currency)} a bitcoin",
    )
    if row.expires_ms:
        yield "", f"to be paid before {iso_ms(row.expires_ms)}"
    if row.description:
        yield "", row.description
    if row.reference:
        yield "reference", row.reference
    yield "address", f"{row.deposit_address}, number {row.address_index} of the account"


def _received_lines(story: Story) -> Lines:
    """Yields what was received for the invoice, output by output, and what is missing."""
    verdict = story.verdict
    needed = story.confirmations_needed
    unconfirmed = f"{verdict.unconfirmed_sats} of them unconfirmed"
    confirmations = min(verdict.confirmations, needed)
    depth = f"{confirmations} of {confirmations_text(needed)}"
    yield "seen", f"{verdict.received_sats} satoshis that count, {unconfirmed}; {depth}"
    for output in story.outputs:
        yield "", _output(output)
    yield "missing", f"{verdict.missing_sats} satoshis"


def _reason_lines(story: Story) -> Lines:
    """Yields why the invoice has its status, and why it needs attention, if it does."""
    row = story.row
    yield "why", story.verdict.reason
    if row.settled_reason:
        yield "", f"settled by hand: {row.settled_reason}"
    reason = row.attention
    if reason:
        yield "attention", f"{REASONS[reason]}, since {iso_ms(row.attention_since_ms)}"
        yield "", ADVICE[reason]


def _output(output: Output) -> str:
    """Describes an output: its amount, where it is, its fee rate, its payment."""
    where = "waits in the mempool"
    if output.vanished_ms:
        where = f"gone since {iso_ms(output.vanished_ms)}: replaced or dropped"
    elif output.block_height is not None:
        where = f"in block {output.block_height}"
    facts = [
        f"{output.amount_sats} satoshis by {output.txid}:{output.vout}",
        f"first seen {iso_ms(output.first_seen_ms)}",
        where,
    ]
    if output.feerate is not None:
        facts.append(f"pays {Decimal(output.feerate) / 1000:.1f} sat/vB")
    if output.payment_id:
        facts.append(f"counted as {output.payment_id}")
    if output.spent_height:
        facts.append(f"spent in block {output.spent_height}")
    return ", ".join(facts)


def _facts(kind: str, detail: str) -> str:
    """Describes the detail (JSON) of a history entry, after a colon; "" if it has none."""
    facts: dict[str, Any] = json.loads(detail)
    parts = []
    if "amount_sats" in facts:
        parts.append(f"{facts['amount_sats']} satoshis")
    if "vout" in facts:
        parts.append(f"{facts['txid']}:{facts['vout']}")
    elif "txid" in facts:
        parts.append(facts["txid"])
    block = facts.get("block")
    if block:
        parts.append(f"block {block['height']} {block['hash']}")
    if "height" in facts:
        parts.append(f"block {facts['height']}")
    if "reason" in facts:
        parts.append(facts["reason"].removeprefix(kind).lstrip(": "))
    if facts.get("reopened"):
        parts.append("the invoice is open again")
    if facts.get("explorer"):
        parts.append(f"by {facts['explorer']}")
    if parts:
        return ": " + ", ".join(parts)
    return ""
