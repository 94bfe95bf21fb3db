"""How every path is served: a rule of its own, and JSON that ends with a newline."""

from collections.abc import Callable
from typing import Any

import orjson
from flask import Flask

from btcpay.web.application import Answer
from btcpay.web.errors import JSON


def add_path(
    app: Flask, path: str, view: Callable[..., Any], name: str | None = None, method: str = "GET"
) -> None:
    """Serves one method of one path; any other is refused, OPTIONS too."""
    app.add_url_rule(path, name or path, view, methods=[method], provide_automatic_options=False)


def answer(value: Any) -> Answer:
    """200 with a JSON value; the newline at its end is for terminals."""
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return Answer(body, 200, content_type=JSON)
