"""A request's body as it was received: within the limit, whole, and JSON."""

from typing import Any

from flask import current_app, request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from btcpay.values.errors import InvalidRequest, PayloadTooLarge
from btcpay.web import json_body
from btcpay.web.errors import JSON


def read_body() -> bytes:
    """The request's body. Raises PayloadTooLarge; InvalidRequest when it does not arrive whole."""
    # Werkzeug silently cuts a chunked body at its limit; one byte more shows it.
    max_bytes = current_app.config["MAX_CONTENT_LENGTH"] - 1
    too_large = PayloadTooLarge(f"the body exceeds {max_bytes} bytes")
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        raise too_large from None
    except (OSError, ParseException, HTTPException):
        raise InvalidRequest("the body did not arrive whole") from None
    if len(body) > max_bytes:
        raise too_large
    if request.content_length is not None and len(body) < request.content_length:
        raise InvalidRequest("the body did not arrive whole")
    return body


def read_json(empty: bytes | None) -> Any:
    """The body's JSON value. Raises InvalidRequest for another content type or malformed JSON."""
    body = read_body()
    if not body and empty is not None:
        return json_body.parse(empty)
    if request.mimetype != JSON:
        raise InvalidRequest("the Content-Type must be application/json")
    return json_body.parse(body)
