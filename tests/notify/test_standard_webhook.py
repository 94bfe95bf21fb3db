"""Standard Webhooks: signatures by its vector and library, and retries."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from btcpay.notify.schedule import JITTER_PERMILLE, OFFSETS, next_try, reason_to_disable
from btcpay.notify.transports import PREFIX, headers, new_secret, sign

SECRET = new_secret()
PAID = b'{"type":"invoice.paid","timestamp":"","data":{"invoice":{"id":"inv_1"}}}'
# standard-webhooks/standard-webhooks, libraries/python/tests/test_webhooks.py, test_sign_function
VECTOR = {
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "timestamp_s": 1614265330,
    "body": b'{"test": 2432232314}',
}
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
UNICODE = b'{"type":"invoice.paid","data":{"memo":"\xe2\x82\xbf \xf0\x9f\x98\x80"}}'


def test_the_published_vector_is_signed_as_published():
    assert sign(**VECTOR) == SIGNATURE  # type: ignore[arg-type]


def test_a_secret_is_what_the_specification_asks_for():
    secret = new_secret()
    assert secret.startswith("whsec_") and secret != new_secret()
    assert len(base64.b64decode(secret.removeprefix(PREFIX), validate=True)) == 32


def test_the_library_accepts_what_is_signed_with_the_new_secret_or_the_old():
    new = new_secret()
    old = new_secret()
    signed = headers([new, old], "evt_1", datetime.now(UTC), UNICODE)
    for secret in (new, old):
        Webhook(secret).verify(UNICODE, signed)


NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Standard Webhooks 1.0.0, "Example retry schedule": time since start.
SINCE_START = [
    timedelta(hours=h, minutes=m, seconds=5)
    for h, m in (
        (0, 0),
        (0, 5),
        (0, 35),
        (2, 35),
        (7, 35),
        (17, 35),
        (31, 35),
        (51, 35),
        (75, 35),
    )
]


def test_attempts_come_when_the_specification_says_and_then_it_is_given_up():
    at = NOW
    found = []
    while at := next_try(NOW, at, permille=0):
        found.append(at - NOW)
    assert found == SINCE_START == OFFSETS


def test_a_shop_that_was_away_leaves_out_the_times_that_passed():
    assert next_try(NOW, NOW + timedelta(hours=1), permille=0) == NOW + OFFSETS[3]


def test_a_pause_is_at_most_a_tenth_longer():
    for before, offset in zip([timedelta(), *OFFSETS], OFFSETS, strict=False):
        pauses = {
            (next_try(NOW, NOW + before) or NOW) - NOW - before for _ in range(50)
        }
        pause = offset - before
        assert pause <= min(pauses) < max(pauses) <= pause * 1.1
        assert (
            next_try(NOW, NOW + before, JITTER_PERMILLE) == NOW + before + pause * 1.1
        )


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
    assert reason_to_disable(status, NOW - failing, NOW) == reason
