"""Paths of a part of the service, and answers in JSON."""

from collections.abc import Callable, Iterable
from typing import Any, NoReturn
from urllib.parse import quote

import orjson
from flask import Blueprint, Response, current_app, request
from flask.blueprints import BlueprintSetupState
from werkzeug.datastructures import Headers
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import PathConverter, Rule

JSON = "application/json"
# No browser takes the answer for another type.
NOSNIFF = {"X-Content-Type-Options": "nosniff"}
_PREFERENCES = ("HTTP_ACCEPT_LANGUAGE", "HTTP_ACCEPT_ENCODING")
MAX_PREFERENCE = 500  # characters
NONE = "none"  # the endpoint of everything that is not served


class Rest(PathConverter):
    """Any end of a path: it may be empty, and may contain slashes and line breaks."""

    part_isolating = False
    regex = "(?s:.*?)"


def add_path(
    blueprint: Blueprint,
    path: str,
    view: Callable[..., Any],
    name: str,
    method: str = "GET",
) -> None:
    """Serves one method of one path; other methods are refused, OPTIONS too."""
    blueprint.add_url_rule(
        path, name, view, methods=[method], provide_automatic_options=False
    )


def add_pages(
    blueprint: Blueprint, views: Iterable[tuple[str, str, Callable[..., Any]]]
) -> None:
    """Serves (method, path, view); a page's path with a slash at its end redirects to the page."""
    for method, path, view in views:
        name = f"{method} {path.replace('.', '_')}"
        add_path(blueprint, path, view, name, method)
        if method == "GET" and not path.endswith("/"):
            add_path(blueprint, f"{path}/", redirect_to_page, f"{name}/")


def redirect_to_page(**_: str) -> Response:
    """Redirects to the path without its slash, and keeps the query.

    The redirect is relative, since a proxy may serve us below a path of its own.
    """
    name = quote(request.path.rstrip("/").rpartition("/")[2])
    url = f"../{name}"
    query = request.query_string.decode("latin-1")
    if query:
        url += f"?{query}"
    return Response(status=308, headers={"Location": url, "Cache-Control": "no-store"})


def refuse_others(blueprint: Blueprint, *paths: str) -> None:
    """Has the blueprint refuse every other request to these paths, whatever its method.

    So the request passes the blueprint's guard, and its answer has the blueprint's form and
    headers. `<rest:rest>` stands for any end of a path.
    """

    def add(state: BlueprintSetupState) -> None:
        state.app.url_map.converters["rest"] = Rest
        endpoint = f"{state.name_prefix}.{state.name}.{NONE}".lstrip(".")
        state.app.view_functions[endpoint] = refuse
        for path in paths:
            state.app.url_map.add(
                Rule(f"{state.url_prefix or ''}{path}", endpoint=endpoint)
            )

    blueprint.record(add)


def refuse(**_: str) -> NoReturn:
    """Raises NotFound, or MethodNotAllowed if the path is served by other methods."""
    allowed: set[str] = set()
    for rule in current_app.url_map.iter_rules():
        if rule.rule == str(request.url_rule):
            allowed |= rule.methods or set()
    if allowed:
        raise MethodNotAllowed(allowed)
    raise NotFound


def normalize_http(served: Callable[..., Any]) -> Callable[..., Any]:
    """The WSGI application, which gets each request in a form that werkzeug's router takes.

    - A websocket's handshake becomes a plain GET. The router would refuse it before any guard.
    - An empty path becomes `/`. The router would redirect it.
    - Every `Host` becomes `localhost`: nothing reads it, and the router would refuse a malformed
      one before any guard.
    - A list of preferences that is longer than any browser's is removed: to parse it takes 70 ms.
    """

    def serve(environ: dict[str, Any], start: Any) -> Any:
        for name in _PREFERENCES:
            if len(environ.get(name, "")) > MAX_PREFERENCE:
                del environ[name]
        environ.pop("HTTP_UPGRADE", None)
        environ["HTTP_HOST"] = "localhost"
        environ["PATH_INFO"] = environ["PATH_INFO"] or "/"
        return served(environ, start)

    return serve


class JsonResponse(Response):
    """JSON. Its headers do not depend on the request, so werkzeug need not copy them."""

    def get_wsgi_headers(self, environ: Any) -> Headers:
        return self.headers


def json_response(value: Any, status: int = 200) -> Response:
    """The value as JSON, with a newline at its end for terminals."""
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return JsonResponse(body, status, NOSNIFF, content_type=JSON)
