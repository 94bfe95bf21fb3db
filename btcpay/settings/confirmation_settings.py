"""The number of confirmations that invoices need, and the parser of that setting."""

import re
from dataclasses import dataclass
from decimal import Decimal

from btcpay.settings.parsers import accepting, require

MOST_CONFIRMATIONS = 100
# A number of confirmations, such as 1, or one from an amount in dollars on, such as 3@1000.
_STEP = re.compile(
    r"(?P<count>[0-9]{1,3})(?:@(?P<from_usd>[0-9]{1,12}(?:\.[0-9]{1,2})?))?"
)


@dataclass(frozen=True)
class Confirmations:
    """How many confirmations an invoice needs, depending on its amount in dollars.

    `steps` are pairs (from_usd, confirmations), in ascending order of from_usd. The
    last pair whose from_usd does not exceed the amount is used.
    """

    steps: tuple[tuple[Decimal, int], ...]

    def for_usd(self, amount_usd: Decimal) -> int:
        """Returns the number of confirmations for an invoice of this amount."""
        counts = [count for from_usd, count in self.steps if amount_usd >= from_usd]
        return counts[-1]  # the first step is from 0 dollars on


@accepting(
    "a number of blocks from 1 to 100, or ascending steps by USD such as 1 3@1000 6@10000"
)
def confirmations(text: str) -> Confirmations:
    """Parses a text such as `1 3@1000`: one confirmation, and three from 1,000 dollars on.

    The first number must have no amount. The others must have increasing amounts. Raises
    ValueError for any other text.
    """
    steps: list[tuple[Decimal, int]] = []
    for item in text.split():
        match = _STEP.fullmatch(item)
        if match is None:
            raise ValueError
        count = int(match["count"])
        has_amount = match["from_usd"] is not None
        is_first = not steps
        require(1 <= count <= MOST_CONFIRMATIONS)
        require(has_amount != is_first)  # the first has none, each other has one
        steps.append((Decimal(match["from_usd"] or 0), count))
    amounts = [from_usd for from_usd, _count in steps]
    is_increasing = amounts == sorted(set(amounts))
    require(steps and is_increasing)
    return Confirmations(tuple(steps))
