"""The caller of an interface for programs, by the key in `Authorization`."""

from collections.abc import Sequence

from flask import request

from btcpay.merchants.keys import caller_of
from btcpay.values.errors import Unauthorized
from btcpay.web.admission import count, wrong
from btcpay.web.service import Service
from storage.queries import keys


def key_of(service: Service, schemes: Sequence[str] = ("bearer",)) -> keys.Caller:
    """An invalid key counts against its address; a missing one not. Raises Unauthorized."""
    scheme, _, secret = request.headers.get("Authorization", "").strip().partition(" ")
    secret, is_one, now = secret.strip(), scheme.lower() in schemes, service.now()
    caller = caller_of(service.db, secret, now) if is_one and secret else None
    if caller:
        service.notes.note(keys.USED, caller.key_id, now)
        return caller
    if not scheme or (is_one and not secret):
        raise Unauthorized("send the API key as `Authorization: Bearer KEY`")
    count(service, wrong())
    if is_one:
        raise Unauthorized("the API key is not valid")
    raise Unauthorized("the API key cannot be read: send it as `Authorization: Bearer KEY`")
