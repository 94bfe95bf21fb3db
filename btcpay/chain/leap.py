"""Decides whether this machine's clock is believed, from what the last runs saw. Pure.

A check makes and deletes things by the clock that cannot be taken back: what parts make for a new
period, mails, addresses that are erased. So a clock that has leapt is believed only if something
else confirms it. A step back makes nothing, and is believed at once.

1. The newest block must not be hours ahead of the clock.
2. A clock near what the last run saw is believed: a short outage needs no witness.
3. After a longer outage the blocks since then are the witness, if each costs work. There must be at
   least half as many as such a time has. A node of one's own with a false clock has none of them.
4. If blocks prove nothing, or none was known before, the clock must run for an hour in step with
   one that nobody can set, while enough sources show the same chain.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

# The network accepts blocks that are two hours ahead of its clocks, and ours may be an hour behind.
BLOCK_AHEAD = timedelta(hours=3)
NEAR = timedelta(days=2)  # an outage as short as a weekend needs no witness
# Without work no money can be lost either. So a month without a check is accepted, and nobody who
# plays with the clock in a sandbox has to wait.
NEAR_UNPROVEN = timedelta(days=35)
BLOCK_TIME = timedelta(minutes=10)
# Blocks may take twice as long for weeks: in July 2021 a week had 60 % of what it should.
SLOWEST = 2
CONFIRMED_AFTER = timedelta(hours=1)
DRIFT = timedelta(minutes=5)  # between two clocks, in the time that confirms a leap


class Moment(NamedTuple):
    """The time and the newest block, as a run saw them; no block if none is known."""

    clock_at: datetime
    tip_at: datetime | None = None
    height: int | None = None


class Leap(NamedTuple):
    """A leap that an earlier run saw: its clock, and how long ago that was.

    `waited` is by a clock that nobody sets; None if the machine was started since.
    """

    clock_at: datetime
    waited: timedelta | None

    def goes_on(self, clock_at: datetime) -> bool:
        """True if the clock has run on since then in step with the other."""
        if self.waited is None:
            return False
        passed = clock_at - self.clock_at
        return abs(passed - self.waited) <= DRIFT

    def is_confirmed(self, clock_at: datetime) -> bool:
        """True if it has run in step for long enough."""
        if self.waited is None or self.waited < CONFIRMED_AFTER:
            return False
        return self.goes_on(clock_at)


def reason_to_doubt(
    believed: Moment,
    current: Moment,
    leap: Leap | None,
    costs_work: bool,
    is_agreed: bool,
) -> str:
    """The reason not to believe the clock of `current`; empty if it is believed.

    `believed` is the last moment that was believed. `costs_work`: each block of the network does.
    `is_agreed`: enough sources show the same chain.
    """
    if current.tip_at is not None:
        tip_ahead = current.tip_at - current.clock_at
        if tip_ahead > BLOCK_AHEAD:
            return f"the newest block is {_describe(tip_ahead)} ahead of this clock"
    passed = current.clock_at - believed.clock_at
    near = NEAR_UNPROVEN
    if costs_work:
        near = NEAR
    if passed <= near:
        return ""
    if costs_work and believed.height is not None and current.height is not None:
        new_blocks = current.height - believed.height
        if new_blocks * BLOCK_TIME * SLOWEST >= passed:
            return ""
        return f"this clock has gone on by {_describe(passed)}, and {new_blocks} blocks have come"
    if leap is not None and leap.is_confirmed(current.clock_at) and is_agreed:
        return ""
    return f"this clock has gone on by {_describe(passed)} since the last check"


def _describe(time: timedelta) -> str:
    if time < timedelta(days=2):
        return f"{time // timedelta(hours=1)} hours"
    return f"{time.days} days"
