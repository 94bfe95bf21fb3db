"""Flask as this service uses it: without sessions, coroutines and names of hosts."""

from typing import Any

from flask import Flask, Request, Response
from flask.sessions import NullSession, SessionInterface
from werkzeug.routing import MapAdapter

Names = tuple[tuple[str, str], ...]


class Answer(Response):
    """An answer; `last`: headers of our own that go out behind the others, as they are."""

    last: Names = ()

    def get_wsgi_response(self, environ: dict[str, Any]) -> Any:
        """Werkzeug looks at every header; these need no look."""
        body, status, headers = super().get_wsgi_response(environ)
        return body, status, [*headers, *self.last]


class NoSessions(SessionInterface):
    """Every request has the same session, in which nothing can be kept."""

    _none = NullSession()

    def open_session(self, *_: Any) -> NullSession:
        """The one that there is."""
        return self._none


class Application(Flask):
    """Flask, without what costs every request something and none of ours uses."""

    response_class = Answer
    session_interface = NoSessions()

    def ensure_sync(self, func: Any) -> Any:
        """No view is a coroutine."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Finds a path's view, whatever name of this host the client has used."""
        if request is None:
            return super().create_url_adapter(None)
        path, method = request.path, request.method
        return MapAdapter(self.url_map, "", request.root_path, "", "http", path, method)
