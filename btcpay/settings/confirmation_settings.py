"""The number of confirmations that invoices need, and the parser of that setting."""

import re
from dataclasses import dataclass
from decimal import Decimal

from btcpay.settings.parsers import accepting, require


@dataclass(frozen=True)
class Confirmations:
    """How many confirmations an invoice needs, depending on its amount in dollars.

    `steps` are pairs (from_usd, confirmations), in ascending order of from_usd. The
    last pair whose from_usd does not exceed the amount is used.
    """

    steps: tuple[tuple[Decimal, int], ...]

    def for_usd(self, amount_usd: Decimal) -> int:
        """Returns the number of confirmations for an invoice of this amount."""
        return [blocks for from_usd, blocks in self.steps if amount_usd >= from_usd][-1]


@accepting(
    "a number of blocks from 1 to 100, or ascending steps by USD such as 1 3@1000 6@10000"
)
def confirmations(text: str) -> Confirmations:
    steps: list[tuple[Decimal, int]] = []
    for item in text.split():
        match = re.fullmatch(r"([0-9]{1,3})(?:@([0-9]{1,12}(?:\.[0-9]{1,2})?))?", item)
        if (
            not match
            or (match[2] is None) != (not steps)
            or not 1 <= int(match[1]) <= 100
        ):
            raise ValueError
        steps.append((Decimal(match[2] or 0), int(match[1])))
    amounts = [from_usd for from_usd, _ in steps]
    require(steps and amounts == sorted(set(amounts)))
    return Confirmations(tuple(steps))
