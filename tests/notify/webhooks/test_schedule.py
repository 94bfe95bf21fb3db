"""When it is tried again, and when an endpoint is given up, on both sides of each threshold."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.notify.webhooks.schedule import JITTER_PERMILLE, PAUSES, next_try, why_disabled

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Standard Webhooks 1.0.0, "Example retry schedule": time since start.
SINCE_START = [
    timedelta(hours=h, minutes=m, seconds=5)
    for h, m in ((0, 0), (0, 5), (0, 35), (2, 35), (7, 35), (17, 35), (31, 35), (51, 35), (75, 35))
]


def test_attempts_come_when_the_specification_says():
    at, found = NOW, []
    for attempts in range(1, 10):
        at = next_try(attempts, at, permille=0) or at
        found.append(at - NOW)
    assert found == SINCE_START


def test_after_the_tenth_it_is_given_up():
    assert next_try(9, NOW) and next_try(10, NOW) is None


@pytest.mark.parametrize("attempts", range(1, 10))
def test_a_pause_is_at_most_a_tenth_longer(attempts):
    pauses = {(next_try(attempts, NOW) or NOW) - NOW for _ in range(50)}
    assert PAUSES[attempts - 1] <= min(pauses) < max(pauses) <= PAUSES[attempts - 1] * 1.1
    longest = next_try(attempts, NOW, JITTER_PERMILLE)
    assert longest == NOW + PAUSES[attempts - 1] * 1.1


DAYS = timedelta(days=5)
CASES = {
    "five days less a moment": (500, DAYS - timedelta(milliseconds=1), None),
    "five days": (500, DAYS, "nothing could be delivered for 5 days"),
    "gone, at once": (410, timedelta(), "it answered 410 Gone"),
    "not found": (404, timedelta(), None),
    "no answer for five days": (None, DAYS, "nothing could be delivered for 5 days"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_endpoint_is_given_up(case):
    status, failing, reason = case
    assert why_disabled(status, NOW - failing, NOW) == reason
