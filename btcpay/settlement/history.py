"""Filters an invoice's history for events that can require attention. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Decisions of a human. Each settles everything that happened before it.
LAST_WORDS = ("settled", "dismissed", "canceled")
SENT_BACK = "refund sent"
SENT_AGAIN = "refund sent again"
TAKEN_BACK = "refund undone"


@dataclass(frozen=True)
class Happening:
    """An event in an invoice's history that can require attention.

    The `kind` is one of these:

    - of a payment: "payment", or "undone" if a reorganisation undid the payment
    - of the invoice's status: "paid", "expired", or one of LAST_WORDS
    - of a refund: SENT_BACK, SENT_AGAIN, or TAKEN_BACK if a reorganisation undid the
      refund

    `txid` is a payment's transaction id, or the outpoint of a refund. `amount_sats` is
    set for refunds only.
    """

    kind: str
    txid: str = ""
    amount_sats: int = 0


def events_since(history: Sequence[Happening], *kinds: str) -> list[Happening]:
    """Returns the events after the last human decision, oldest first.

    If `kinds` are given, returns the events after the last event that has one of these
    kinds. Refunds that a reorganisation undid are left out.
    """
    since: list[Happening] = []
    for happening in without_undone_refunds(history):
        if happening.kind in (kinds or LAST_WORDS):
            since = []
        else:
            since.append(happening)
    return since


def without_undone_refunds(history: Sequence[Happening]) -> list[Happening]:
    """Returns the history without refunds that a reorganisation undid."""
    remaining: list[Happening] = []
    for happening in history:
        if happening.kind == TAKEN_BACK:
            remaining = [each for each in remaining if each.txid != happening.txid]
        else:
            remaining.append(happening)
    return remaining


def payment_txids(since: Sequence[Happening]) -> set[str]:
    """Returns the txids of the confirmed payments in `since`."""
    return {happening.txid for happening in since if happening.kind == "payment"}


def undone_txids(since: Sequence[Happening]) -> set[str]:
    """Returns the txids of payments that a reorganisation undid, if they are still undone.

    A payment is no longer undone once a block has its transaction again. Payments that
    were undone before the invoice was paid are left out, since other payments have
    replaced them.
    """
    undone: set[str] = set()
    for happening in since:
        if happening.kind == "undone":
            undone.add(happening.txid)
        elif happening.kind == "paid":
            undone.clear()
        elif happening.kind == "payment":
            undone.discard(happening.txid)
    return undone


def sum_of(kind: str, history: Iterable[Happening]) -> int:
    """Returns the sum of the amounts of all events of this kind, in satoshis."""
    return sum(happening.amount_sats for happening in history if happening.kind == kind)
