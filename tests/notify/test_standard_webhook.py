"""Signatures are those of Standard Webhooks, by its published vector and by its library."""

import base64
from datetime import UTC, datetime

from standardwebhooks import Webhook

from btcpay.notify.transports import PREFIX, headers, new_secret, sign

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


def test_the_library_accepts_what_is_signed_with_the_new_secret_or_the_old():
    new, old = new_secret(), new_secret()
    signed = headers([new, old], "evt_1", datetime.now(UTC), BODY)
    for secret in (new, old):
        Webhook(secret).verify(BODY, signed)
