"""Flask as this service uses it: no coroutines or names of hosts; one way to a path."""

from collections.abc import Callable
from typing import Any

import orjson
from flask import Blueprint, Flask, Request, Response
from werkzeug.routing import MapAdapter

JSON = "application/json"


class Answer(Response):
    """An answer; `last`: headers of our own that go out behind the others, as they are."""

    last: tuple[tuple[str, str], ...] = ()

    def get_wsgi_response(self, environ: dict[str, Any]) -> Any:
        """Werkzeug looks at every header; these need no look."""
        body, status, headers = super().get_wsgi_response(environ)
        return body, status, [*headers, *self.last]

    def get_app_iter(self, environ: dict[str, Any]) -> Any:
        """A whole body leaves nothing to close."""
        if self.is_sequence and self.status_code < 204 and environ["REQUEST_METHOD"] != "HEAD":
            return self.response
        return super().get_app_iter(environ)


class Application(Flask):
    """Flask, without what costs every request something and none of ours uses."""

    response_class = Answer

    def ensure_sync(self, func: Any) -> Any:
        """No view is a coroutine."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Finds a path's view, whatever name of this host the client has used."""
        if request is None:
            return super().create_url_adapter(None)
        path, method = request.path, request.method
        return MapAdapter(self.url_map, "", request.root_path, "", "http", path, method)


def add_path(
    app: Flask | Blueprint, path: str, view: Callable[..., Any], name: str, method: str = "GET"
) -> None:
    """Serves one method of one path; any other is refused, OPTIONS too."""
    app.add_url_rule(path, name, view, methods=[method], provide_automatic_options=False)


def answer(value: Any, status: int = 200) -> Answer:
    """A JSON value; the newline at its end is for terminals."""
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return Answer(body, status, content_type=JSON)
