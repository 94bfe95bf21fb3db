"""Signatures are those of Standard Webhooks, by its published vector and by its library."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from btcpay.notify.standard_webhook import PREFIX, headers, new_secret, sign

# standard-webhooks/standard-webhooks, libraries/python/tests/test_webhooks.py, test_sign_function
VECTOR = {
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "timestamp_s": 1614265330,
    "body": b'{"test": 2432232314}',
}
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
BODY = b'{"type":"invoice.paid","data":{"memo":"\xe2\x82\xbf \xf0\x9f\x98\x80"}}'


def test_the_published_vector_is_signed_as_published():
    assert sign(**VECTOR) == SIGNATURE  # type: ignore[arg-type]


def test_a_secret_is_what_the_specification_asks_for():
    secret = new_secret()
    assert secret.startswith("whsec_") and secret != new_secret()
    assert len(base64.b64decode(secret.removeprefix(PREFIX), validate=True)) == 32


def test_the_library_accepts_what_is_signed():
    secret = new_secret()
    assert Webhook(secret).verify(BODY, headers([secret], "evt_1", datetime.now(UTC), BODY))["type"]


def test_both_secrets_sign_after_a_rotation():
    new, old = new_secret(), new_secret()
    signed = headers([new, old], "evt_1", datetime.now(UTC), BODY)
    for secret in (new, old):
        Webhook(secret).verify(BODY, signed)


CHANGES = {
    "another body": ({}, BODY + b" "),
    "another id": ({"webhook-id": "evt_2"}, BODY),
    "another time": ({"webhook-timestamp": "1"}, BODY),
    "another signature": ({"webhook-signature": SIGNATURE}, BODY),
    "no signature": ({"webhook-signature": ""}, BODY),
    "an old one, sent again": (
        headers([PREFIX + "AAAA"], "evt_1", datetime(2026, 1, 1, tzinfo=UTC), BODY),
        BODY,
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_library_refuses_what_was_changed(change):
    changed, body = change
    secret = new_secret()
    signed = headers([secret], "evt_1", datetime.now(UTC), BODY) | changed
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, signed)


@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_message_that_is_replayed_later_is_refused_by_its_time(minutes):
    secret = new_secret()
    at = datetime.now(UTC) + timedelta(minutes=minutes)
    signed = headers([secret], "evt_1", at, BODY)
    with pytest.raises(WebhookVerificationError, match="timestamp"):
        Webhook(secret).verify(BODY, signed)
