"""The gap limit (BIP44): how many unused addresses in a row a wallet must look at, mostly 20.

When more invoices in a row stay unpaid, the wallet does not show the next payment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from storage.database import Database
from storage.models import Merchant
from storage.queries.totals import gaps

# A merchant is warned when so much of the wallet's limit is used: with 20, five more may go unpaid.
EARLY = Fraction(3, 4)
MARGIN = 100  # what to set beyond today's need, so that the limit need not be raised every week


@dataclass(frozen=True)
class Gap:
    """`highest_paid` is an address index, None before the first payment.

    `limit`: the smallest with which a wallet finds every payment and the next invoice's address.
    """

    next_index: int
    highest_paid: int | None
    limit: int

    def is_well_within(self, wallet_gap_limit: int) -> bool:
        """True where a wallet with this limit sees everything, and will for a while yet."""
        return self.limit <= wallet_gap_limit * EARLY


def gap_of(paid: Sequence[int], next_index: int, widest: int = 0) -> Gap:
    """The gap of an account; `paid` are the indexes of its paid addresses, ascending.

    The first of them may stand for all below it, between which the widest step is `widest`.
    """
    last = paid[-1] if paid else -1
    steps = [*([] if widest else [-1]), *paid, max(next_index, last + 1)]
    limit = max(after - before for before, after in pairwise(steps))
    return Gap(next_index, paid[-1] if paid else None, max(limit, widest))


def gap_of_merchant(
    db: Database, merchant: Merchant, used: Sequence[int] = (), next_index: int | None = None
) -> Gap:
    """A merchant's gap, by the payments that the service has seen, unconfirmed ones too.

    `used`: paid addresses beyond the counter, ascending; `next_index` replaces the counter.
    """
    last = gaps.last_paid(db, merchant.id)
    paid = [*([] if last is None else [last]), *used]
    after = merchant.next_index if next_index is None else next_index
    return gap_of(paid, after, gaps.widest(db, merchant.id))
