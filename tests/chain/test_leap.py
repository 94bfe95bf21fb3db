"""Whether a clock that has leapt is believed: a table of cases, both sides of each threshold."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.chain.leap import (
    BLOCK_AHEAD,
    CONFIRMED_AFTER,
    DRIFT,
    NEAR,
    NEAR_UNPROVEN,
    Leap,
    Moment,
    reason_to_doubt,
)

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
IN_2099 = datetime(2099, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
KNOWN = Moment(NOON, NOON - 5 * MINUTE, 900_000)


def later(by, blocks=0, tip_age=MINUTE):
    """What a run sees so much later: its newest block is of just then."""
    return Moment(NOON + by, NOON + by - tip_age, 900_000 + blocks)


def waited(clock_at, by):
    """A leap that was seen for so long, while the clock went on as clocks do."""
    return Leap(clock_at - by, by)


LEAP_2099 = Moment(IN_2099, IN_2099 - MINUTE, 900_001)
YEARS_OF_BLOCKS = Moment(IN_2099, IN_2099 - MINUTE, 900_000 + 72 * 52_560)
# Known, seen, the leap that was noted, whether blocks cost work, whether enough sources agree.
BELIEVED = {
    "a minute later": (KNOWN, later(MINUTE), None, True, True),
    "a weekend without a check": (KNOWN, later(NEAR), None, True, True),
    "one source alone, a minute later": (KNOWN, later(MINUTE), None, True, False),
    "three weeks without a check, and their blocks": (
        KNOWN, later(21 * DAY, 3024), None, True, True),
    "three weeks, whose blocks came half as fast": (KNOWN, later(21 * DAY, 1512), None, True, True),
    "a year without a check, and one source, one's own": (
        KNOWN, later(365 * DAY, 52_560), None, True, False),
    "2099, when it has come": (KNOWN, YEARS_OF_BLOCKS, None, True, True),
    "a month in a sandbox": (KNOWN, later(NEAR_UNPROVEN), None, False, True),
    "a clock that was set back": (KNOWN, later(-300 * DAY, tip_age=DAY), None, True, True),
    "a clock that was set right after 2099": (LEAP_2099, later(MINUTE), None, True, True),
    "a quiet test network": (KNOWN, later(30 * DAY, tip_age=90 * DAY), None, False, True),
    "no block is known, a day later": (Moment(NOON), Moment(NOON + DAY), None, True, False),
    "a block ahead of a clock that is behind": (
        KNOWN, later(MINUTE, tip_age=-BLOCK_AHEAD), None, True, True),
    "a shop made in spring, an hour after its first check": (
        Moment(NOON - 200 * DAY), later(MINUTE), waited(NOON + MINUTE, CONFIRMED_AFTER), True,
        True),
    "a year in a sandbox, an hour after it was seen": (
        KNOWN, later(365 * DAY), waited(NOON + 365 * DAY, CONFIRMED_AFTER), False, True),
    "after an hour in which the clock drifted": (
        KNOWN, later(365 * DAY),
        Leap(NOON + 365 * DAY - CONFIRMED_AFTER - DRIFT, CONFIRMED_AFTER), False, True),
}  # fmt: skip
DOUBTED = {
    "2099 by clock and source": (KNOWN, LEAP_2099, None, True, True),
    "2099 by clock and source, again and again": (
        KNOWN, LEAP_2099, waited(IN_2099, 90 * DAY), True, True),
    "2099 in a sandbox": (KNOWN, LEAP_2099, None, False, True),
    "more than a weekend, without a block": (KNOWN, later(NEAR + SECOND), None, True, True),
    "three weeks, with one block too few": (KNOWN, later(21 * DAY, 1511), None, True, True),
    "a chain that became shorter": (KNOWN, later(3 * DAY, -1), None, True, True),
    "more than a month in a sandbox": (KNOWN, later(NEAR_UNPROVEN + SECOND), None, False, True),
    "a source in 2099": (KNOWN, later(MINUTE, tip_age=-72 * 365 * DAY), None, True, True),
    "a block just too far ahead": (
        KNOWN, later(MINUTE, tip_age=-BLOCK_AHEAD - SECOND), None, True, True),
    "a year in a sandbox, just too early": (
        KNOWN, later(365 * DAY), waited(NOON + 365 * DAY, CONFIRMED_AFTER - SECOND), False, True),
    "an hour later, by one source of two": (
        KNOWN, later(365 * DAY), waited(NOON + 365 * DAY, CONFIRMED_AFTER), False, False),
    "an hour later, and another leap": (
        KNOWN, later(365 * DAY), Leap(NOON + 200 * DAY, CONFIRMED_AFTER), False, True),
    "the machine was started since": (
        KNOWN, later(365 * DAY), Leap(NOON + 365 * DAY - CONFIRMED_AFTER, None), False, True),
    "a shop made in spring, at its first check": (
        Moment(NOON - 200 * DAY), later(MINUTE), None, True, True),
}  # fmt: skip


@pytest.mark.parametrize("case", BELIEVED.values(), ids=BELIEVED)
def test_a_clock_is_believed(case):
    assert reason_to_doubt(*case) == ""


@pytest.mark.parametrize("case", DOUBTED.values(), ids=DOUBTED)
def test_a_clock_is_doubted(case):
    assert reason_to_doubt(*case) != ""
