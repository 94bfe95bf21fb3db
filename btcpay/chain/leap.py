"""Whether this machine's clock may be believed, after all that the last runs saw. Pure.

What a check makes or deletes by the clock cannot be taken back: what parts make for a new period,
mails, addresses that are erased. A clock that has leapt is believed when something else confirms
it; a step back makes nothing, and is believed at once.

1. The newest block is not hours ahead of the clock.
2. The clock is near what the last run saw: a short outage needs no witness.
3. After a longer one, the blocks that came since are the witness where each costs work: they must
   be at least half as many as such a time has. One's own node with a false clock has none of them.
4. Where blocks prove nothing, or none was known before, the clock must go on for an hour as a clock
   does that nobody can set, and enough sources must show the same chain meanwhile.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

# The network takes blocks that are two hours ahead of its clocks; ours may be an hour behind.
BLOCK_AHEAD = timedelta(hours=3)
NEAR = timedelta(days=2)  # an outage as short as a weekend needs no witness
# Where work proves nothing no money is lost either. So a month without a check is forgiven: playing
# with the clock, as one does in a sandbox, needs no patience.
NEAR_UNPROVEN = timedelta(days=35)
BLOCK_TIME = timedelta(minutes=10)
# Blocks may take twice as long for weeks: in July 2021 a week had 60 % of what it should.
SLOWEST = 2
CONFIRMED_AFTER = timedelta(hours=1)
DRIFT = timedelta(minutes=5)  # between two clocks, in the time that confirms a leap


class Moment(NamedTuple):
    """The time and the newest block, as a run saw them; no block where none is known."""

    clock_at: datetime
    tip_at: datetime | None = None
    height: int | None = None


class Leap(NamedTuple):
    """A leap that an earlier run saw: its clock, and how long ago, by a clock that nobody sets.

    `waited` is None when the machine was started since.
    """

    clock_at: datetime
    waited: timedelta | None

    def goes_on(self, clock_at: datetime) -> bool:
        """True if the clock has gone on since as any clock does."""
        if self.waited is None:
            return False
        return abs(clock_at - self.clock_at - self.waited) <= DRIFT

    def is_confirmed(self, clock_at: datetime) -> bool:
        """True if it has gone on so for long enough."""
        has_waited = self.waited is not None and self.waited >= CONFIRMED_AFTER
        return has_waited and self.goes_on(clock_at)


def reason_to_doubt(
    known: Moment, seen: Moment, leap: Leap | None, costs_work: bool, is_agreed: bool
) -> str:
    """The reason not to believe the clock of `seen`; empty if it is believed.

    `known` is the last moment that was believed. `costs_work`: each block of the network does.
    `is_agreed`: enough sources show the same chain.
    """
    if seen.tip_at is not None and seen.tip_at - seen.clock_at > BLOCK_AHEAD:
        return f"the newest block is {_said(seen.tip_at - seen.clock_at)} ahead of this clock"
    passed = seen.clock_at - known.clock_at
    near = NEAR if costs_work else NEAR_UNPROVEN
    if passed <= near:
        return ""
    if costs_work and known.height is not None and seen.height is not None:
        came = seen.height - known.height
        if came * BLOCK_TIME * SLOWEST >= passed:
            return ""
        return f"this clock has gone on by {_said(passed)}, and {came} blocks have come"
    if leap is not None and leap.is_confirmed(seen.clock_at) and is_agreed:
        return ""
    return f"this clock has gone on by {_said(passed)} since the last check"


def _said(time: timedelta) -> str:
    if time < timedelta(days=2):
        return f"{time // timedelta(hours=1)} hours"
    return f"{time.days} days"
