"""What one run may spend of the explorers' hour."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Allowance:
    """What a run may spend, in calls.

    `per_hour` is one explorer's quota: a second explorer is there for when the first fails. `left`
    is what the explorer with the most has left. `since_s` is the time since the run before; None
    when there was none.
    """

    per_hour: int
    left: int
    since_s: float | None = None


UNLIMITED = Allowance(10**9, 10**9)
