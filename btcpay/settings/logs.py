"""Formats log lines as JSON, with the id of the request to which a line belongs."""

import json
import logging
from contextvars import ContextVar
from typing import Any

import orjson

from btcpay.values.times import from_ms, iso

# Set when a request begins; empty in threads that handle no request.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")


class JsonLines(logging.Formatter):
    """Formats each log record as one line of JSON.

    The line has `at`, `level`, `logger` and `message`, and the fields that the caller
    passed as `extra={"fields": {...}}`. It has `request_id` if it belongs to a request,
    and `exception` (a traceback) if it reports an error that was raised.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as one line of JSON, in ASCII."""
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
            # orjson takes a tenth of the time, and each request has a log line
            encoded = orjson.dumps(line)
        except TypeError:
            # A lone surrogate, as in a malformed header, cannot be encoded in UTF-8.
            return json.dumps(line)
        if encoded.isascii():
            return encoded.decode()
        # Escapes other characters: standard error may have an encoding other than UTF-8.
        return json.dumps(line)


class Discreet(logging.Filter):
    """Removes the content of malformed requests from gunicorn's log lines.

    The content may contain secrets.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Replaces the record's message if it shows a request. Keeps every record."""
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
