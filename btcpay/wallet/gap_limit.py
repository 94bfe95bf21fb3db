"""The gap: how far a wallet must look ahead to see every address that was given out.

A wallet looks at so many addresses behind the last one that was paid (BIP44: 20), its gap limit.
Invoices that nobody pays push the next address beyond it: the money is there, the wallet does not
show it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from storage.database import Database, Row
from storage.queries import payments

# Told when so much of a wallet's limit is used: of the common 20 five more may go unpaid by then.
EARLY = Fraction(3, 4)
MARGIN = 100  # what to give a wallet beyond what it needs today, so that it need not be set weekly


@dataclass(frozen=True)
class Gap:
    """`highest_paid` is an address index, None before the first payment.

    `limit` is the least gap limit with which a wallet that starts from nothing finds every
    payment, and the next invoice's address too.
    """

    next_index: int
    highest_paid: int | None
    limit: int

    def is_well_within(self, wallet_gap_limit: int) -> bool:
        """Whether a wallet with this limit sees everything, and will for a while."""
        return self.limit <= wallet_gap_limit * EARLY


def gap_of(paid: Iterable[int], next_index: int) -> Gap:
    """The gap of an account whose paid address indexes are these, in any order."""
    known: Sequence[int] = sorted(set(paid))
    steps = [-1, *known, max(next_index, known[-1] + 1 if known else 0)]
    limit = max(after - before for before, after in zip(steps, steps[1:], strict=False))
    return Gap(next_index, known[-1] if known else None, limit)


def gap_of_merchant(db: Database, merchant: Row) -> Gap:
    """The gap of a merchant, by the payments that the service has seen, unconfirmed ones too."""
    rows = db.rows(payments.PAID_INDEXES, merchant_id=merchant["id"])
    return gap_of((row["address_index"] for row in rows), merchant["next_index"])
