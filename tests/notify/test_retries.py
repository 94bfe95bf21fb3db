"""When it is tried again, and when an endpoint is given up, on both sides of each threshold."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.notify.outcome import JITTER_PERMILLE, OFFSETS, next_try, why_disabled

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Standard Webhooks 1.0.0, "Example retry schedule": time since start.
SINCE_START = [
    timedelta(hours=h, minutes=m, seconds=5)
    for h, m in ((0, 0), (0, 5), (0, 35), (2, 35), (7, 35), (17, 35), (31, 35), (51, 35), (75, 35))
]


def test_attempts_come_when_the_specification_says():
    at, found = NOW, []
    while at := next_try(NOW, at, permille=0):
        found.append(at - NOW)
    assert found == SINCE_START == OFFSETS


def test_at_the_last_time_it_is_given_up():
    last = NOW + OFFSETS[-1]
    assert next_try(NOW, last - timedelta(milliseconds=1)) is not None
    assert next_try(NOW, last) is next_try(NOW, last + timedelta(days=1)) is None


def test_a_shop_that_was_away_leaves_out_the_times_that_passed():
    assert next_try(NOW, NOW + timedelta(hours=1), permille=0) == NOW + OFFSETS[3]


def test_a_pause_is_at_most_a_tenth_longer():
    for before, offset in zip([timedelta(), *OFFSETS], OFFSETS, strict=False):
        pauses = {(next_try(NOW, NOW + before) or NOW) - NOW - before for _ in range(50)}
        pause = offset - before
        assert pause <= min(pauses) < max(pauses) <= pause * 1.1
        assert next_try(NOW, NOW + before, JITTER_PERMILLE) == NOW + before + pause * 1.1


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
