"""The logs of service and commands: JSON lines, each with the id of the request it belongs to."""

import json
import logging
from contextvars import ContextVar
from typing import Any

import orjson

from btcpay.values.times import from_ms, iso

# Set when a request begins; threads that work for no request have none.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")


class JsonLines(logging.Formatter):
    """One JSON object a line: `at`, `level`, `logger`, `message`, the fields of a call's
    `extra={"fields": {...}}`, and where there is one `request_id`, and `exception`: a traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": iso(from_ms(int(record.created * 1000))),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := REQUEST_ID.get():
            line["request_id"] = request_id
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            # a tenth of the time: each request has its line
            encoded = orjson.dumps(line)
        except (
            TypeError
        ):  # half a surrogate pair, as a malformed header may have, is no UTF-8
            return json.dumps(line)
        # Escaped, since standard error may have an encoding that is not UTF-8.
        if encoded.isascii():
            return encoded.decode()
        return json.dumps(line)


class Discreet(logging.Filter):
    """Removes from gunicorn's lines their quotes of refused requests, which may be secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = str(record.msg)
        if message.startswith("Invalid request"):
            record.msg = "a malformed request was refused"
            record.args = ()
        elif message.startswith("Error handling request"):
            record.msg = "a request could not be handled"
            record.args = ()
        elif message.startswith("Socket error"):
            record.msg = "a client fell silent within its request"
            record.exc_info = None
        return True


def to_json(logger: logging.Logger) -> None:
    for handler in logger.handlers:
        handler.setFormatter(JsonLines())


def is_json(logger: logging.Logger) -> bool:
    return any(isinstance(handler.formatter, JsonLines) for handler in logger.handlers)
