"""The events in an invoice's history that may call for a human. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# A human's decisions; each deals with everything that happened before it.
LAST_WORDS = ("settled", "dismissed", "canceled")
SENT_BACK = "refund sent"
SENT_AGAIN = "refund sent again"
TAKEN_BACK = "refund undone"


@dataclass(frozen=True)
class Happening:
    """An event that may call for a human.

    `kind`: payment, undone (a reorganisation took a payment back), paid, expired, one of
    LAST_WORDS, or a refund's SENT_BACK, SENT_AGAIN and TAKEN_BACK, which takes back either.
    `txid`: a payment's transaction, or the txid and vout of a refund. `amount_sats`: a refund's.
    """

    kind: str
    txid: str = ""
    amount_sats: int = 0


def events_since(history: Sequence[Happening], *kinds: str) -> list[Happening]:
    """The events that still count, oldest first.

    They came after a human's last word, or if `kinds` are given, after the last event of these.
    """
    since: list[Happening] = []
    for happening in without_undone_refunds(history):
        if happening.kind in (kinds or LAST_WORDS):
            since = []
        else:
            since.append(happening)
    return since


def without_undone_refunds(history: Sequence[Happening]) -> list[Happening]:
    """The history without refunds that a reorganisation took back."""
    remaining: list[Happening] = []
    for happening in history:
        if happening.kind == TAKEN_BACK:
            remaining = [each for each in remaining if each.txid != happening.txid]
        else:
            remaining.append(happening)
    return remaining


def payment_txids(since: Sequence[Happening]) -> set[str]:
    return {happening.txid for happening in since if happening.kind == "payment"}


def undone_txids(since: Sequence[Happening]) -> set[str]:
    """The transactions that were undone, and have neither come back nor been replaced."""
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
    """The satoshis of the events of this kind."""
    return sum(happening.amount_sats for happening in history if happening.kind == kind)
