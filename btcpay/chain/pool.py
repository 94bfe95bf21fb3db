"""All sources of a kind, asked as one, and what that has cost."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from btcpay.chain.line import Line, Source
from btcpay.http.clock_skew import ClockSkew


@dataclass(frozen=True)
class Allowance:
    """What a run may spend, in calls.

    `per_hour` is the quota of one explorer, as a second one is a reserve. `left` is what the one
    with the most has left; `minutely` of that lasts until those of the past hour come back.
    """

    per_hour: int
    left: int
    minutely: float


UNLIMITED = Allowance(10**9, 10**9, 10**9)


class Pool(Line[Source]):
    """`clock_skew` has the times in their answers. Closed at the end of a run."""

    def __init__(
        self,
        open_all: Callable[[ClockSkew], Sequence[Source]],
        after: Callable[[], None],
        pause: Callable[[float], None],
    ) -> None:
        self.clock_skew = ClockSkew()
        self.all = open_all(self.clock_skew)
        super().__init__(self.all, after, pause)

    @property
    def calls(self) -> int:
        """Requests made so far, failed ones too."""
        return sum(one.calls for one in self.all)

    @property
    def bytes_read(self) -> int:
        """The bytes of the answers so far, those that broke off too."""
        return sum(one.bytes_read for one in self.all)

    def allowance(self) -> Allowance:
        """What may still be asked in this hour."""
        return UNLIMITED

    def end_within(self, seconds: float) -> None:
        """After so many nobody is asked any more."""
        for one in self.all:
            one.until_s = time.monotonic() + seconds

    def close(self) -> None:
        """Nobody asks on."""
        self.end_within(0)
