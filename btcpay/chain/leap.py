"""Decides whether the system clock is believed after a jump. Pure.

Some actions of a check depend on the clock and cannot be undone: records for a new
period, mails, erasure of addresses. So a clock that has jumped ahead is believed only
if something else confirms it. A step back triggers no such action, and is believed at
once.

The newest block must not be hours ahead of the clock. Besides that, one of these is
enough:

1. The clock is near the time of the last check: a short outage.
2. On a network where blocks cost work: since then at least half the usual number of
   blocks was mined. If the clock has jumped ahead by mistake, the blocks for that time
   do not exist.
3. On other networks, or if no earlier block is known: the clock has run for an hour in
   step with a monotonic clock, and enough sources show the same chain.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

# Nodes accept blocks up to two hours ahead of their clocks. Our clock may be an hour behind.
BLOCK_AHEAD = timedelta(hours=3)
NEAR = timedelta(days=2)  # an outage of a weekend needs no confirmation
# Coins have no value on a network without work. So an outage of a month is accepted, and developers
# may set the clock of a sandbox ahead.
NEAR_UNPROVEN = timedelta(days=35)
BLOCK_TIME = timedelta(minutes=10)
# Blocks may take twice as long as usual for weeks. In July 2021 a week had 60 % of the blocks.
SLOWEST = 2
CONFIRMED_AFTER = timedelta(hours=1)
# Maximum difference of the two clocks from the jump until it is confirmed.
DRIFT = timedelta(minutes=5)


class Moment(NamedTuple):
    """The clock's time at a check, and the newest block that was known then.

    `tip_at` and `height` are the block's time and height; None if no block was known.
    """

    clock_at: datetime
    tip_at: datetime | None = None
    height: int | None = None


class Leap(NamedTuple):
    """A clock jump that an earlier check detected.

    `clock_at` is the clock time of that check. `waited` is the time since then by a
    monotonic clock, None if the machine was restarted since.
    """

    clock_at: datetime
    waited: timedelta | None

    def goes_on(self, clock_at: datetime) -> bool:
        """True if the clock has kept step with the monotonic clock since the jump.

        `clock_at` is the present clock time.
        """
        if self.waited is None:
            return False
        passed = clock_at - self.clock_at
        return abs(passed - self.waited) <= DRIFT

    def is_confirmed(self, clock_at: datetime) -> bool:
        """True if the clock has kept step with the monotonic clock for CONFIRMED_AFTER.

        This shows that the clock is right. `clock_at` is the present clock time.
        """
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
    """Returns the reason not to believe the clock time of `current`; "" if there is none.

    - `believed`: the time and the newest block at the last check whose clock was believed.
    - `current`: the time and the newest block at this check.
    - `leap`: the jump that is already doubted; None if there is none.
    - `costs_work`: True if each block of the network costs work.
    - `is_agreed`: True if enough sources show the same chain.
    """
    if current.tip_at is not None:
        tip_ahead = current.tip_at - current.clock_at
        if tip_ahead > BLOCK_AHEAD:
            return f"the newest block is {_describe(tip_ahead)} ahead of this clock"
    # Rule 1 of this module: a short outage. A clock that was set back passes too.
    passed = current.clock_at - believed.clock_at
    near = NEAR_UNPROVEN
    if costs_work:
        near = NEAR
    if passed <= near:
        return ""
    # Rule 2: enough blocks were mined. It decides alone if both heights are known.
    if costs_work and believed.height is not None and current.height is not None:
        new_blocks = current.height - believed.height
        if new_blocks * BLOCK_TIME * SLOWEST >= passed:
            return ""
        return f"this clock has gone on by {_describe(passed)}, and {new_blocks} blocks have come"
    # Rule 3: the clock has kept step with a monotonic clock since the jump.
    if leap is not None and leap.is_confirmed(current.clock_at) and is_agreed:
        return ""
    return f"this clock has gone on by {_describe(passed)} since the last check"


def _describe(time: timedelta) -> str:
    if time < timedelta(days=2):
        return f"{time // timedelta(hours=1)} hours"
    return f"{time.days} days"
