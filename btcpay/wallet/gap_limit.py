"""The gap limit (BIP44): how many unused addresses in a row a wallet must look at.

A wallet stops at so many unused addresses behind the last one that was paid, mostly 20. Invoices
that nobody pays push the next address beyond that: then the money is there, but the wallet does
not show it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from storage.database import Database, Row
from storage.queries import merchants, payments

# A merchant is warned when so much of the wallet's limit is used: with 20, five more may go unpaid.
EARLY = Fraction(3, 4)
MARGIN = 100  # what to set beyond today's need, so that the limit need not be raised every week


@dataclass(frozen=True)
class Gap:
    """`highest_paid` is an address index, None before the first payment.

    `limit` is the smallest gap limit with which a wallet that starts from nothing finds every
    payment and the address of the next invoice.
    """

    next_index: int
    highest_paid: int | None
    limit: int

    def is_well_within(self, wallet_gap_limit: int) -> bool:
        """Whether a wallet with this limit sees everything, and will for a while yet."""
        return self.limit <= wallet_gap_limit * EARLY


def gap_of(paid: Iterable[int], next_index: int) -> Gap:
    """The gap of an account; `paid` are the indexes of its paid addresses, in any order."""
    known: Sequence[int] = sorted(set(paid))
    steps = [-1, *known, max(next_index, known[-1] + 1 if known else 0)]
    limit = max(after - before for before, after in zip(steps, steps[1:], strict=False))
    return Gap(next_index, known[-1] if known else None, limit)


def gap_of_merchant(db: Database, merchant: Row) -> Gap:
    """A merchant's gap, by the payments that the service has seen, unconfirmed ones too."""
    rows = db.rows(payments.PAID_INDEXES, merchant_id=merchant["id"])
    return gap_of((row["address_index"] for row in rows), merchant["next_index"])


def set_gap_limit(db: Database, merchant: Row, limit: int) -> Row:
    """Notes which gap limit the merchant's wallet is said to have; returns the row as it is now."""
    db.run(merchants.SAY_GAP, id=merchant["id"], wallet_gap_limit=limit)
    return merchant | {"wallet_gap_limit": limit}
