"""What one run may spend of the explorers' hour."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Allowance:
    """What a run may spend, in calls.

    `per_hour` is one explorer's quota: a second explorer is there for when the first fails. `left`
    is what the explorer with the most has left. `background` is the part of the last hour that went
    to addresses that nobody waits for. `since_s` is the time since the run before, and `rhythm_s`
    how often runs come; both are None when there was no run before.
    """

    per_hour: int
    left: int
    background: int = 0
    since_s: float | None = None
    rhythm_s: float | None = None

    @property
    def is_low(self) -> bool:
        """Whether more than half of it is spent: then no call is made that can wait."""
        return self.left < self.per_hour / 2


UNLIMITED = Allowance(10**9, 10**9)
