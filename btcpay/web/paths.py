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
NOSNIFF = {
    "X-Content-Type-Options": "nosniff"
}  # no browser takes it for something else
_PREFERENCES = ("HTTP_ACCEPT_LANGUAGE", "HTTP_ACCEPT_ENCODING")
MAX_PREFERENCE = 500  # characters
NONE = "none"  # the endpoint of whatever is not served


class Rest(PathConverter):
    """Any end of a path, even an empty one, or one with slashes or line breaks."""

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
    """Serves (method, path, view); who types a slash behind a page's path is led to the page."""
    for method, path, view in views:
        name = f"{method} {path.replace('.', '_')}"
        add_path(blueprint, path, view, name, method)
        if method == "GET" and not path.endswith("/"):
            add_path(blueprint, f"{path}/", redirect_to_page, f"{name}/")


def redirect_to_page(**_: str) -> Response:
    """To the path without its slash, relative: a proxy may serve us below a path of its own."""
    name = quote(request.path.rstrip("/").rpartition("/")[2])
    query = request.query_string.decode("latin-1")
    place = f"../{name}?{query}" if query else f"../{name}"
    return Response(
        status=308, headers={"Location": place, "Cache-Control": "no-store"}
    )


def refuse_others(blueprint: Blueprint, *paths: str) -> None:
    """Has the blueprint refuse every other request to these paths, of any method.

    Such a request comes in by the blueprint's door, and its answer has the blueprint's form and
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
    """404, or 405 where the path is served by other methods."""
    rules = [
        one
        for one in current_app.url_map.iter_rules()
        if one.rule == str(request.url_rule)
    ]
    if allowed := set().union(*(one.methods or () for one in rules)):
        raise MethodNotAllowed(allowed)
    raise NotFound


def normalize_http(served: Callable[..., Any]) -> Callable[..., Any]:
    """Has werkzeug's router take a handshake for a websocket as a GET, and no path as `/`.

    Else it would refuse the former before any part's checks, and redirect the latter. Any `Host` is
    accepted, since nothing reads it; a malformed one would be refused before those checks, too.
    A list of preferences that no browser sends is not read: a long one takes 70 ms to parse.
    """

    def called(environ: dict[str, Any], start: Any) -> Any:
        for name in _PREFERENCES:
            if len(environ.get(name, "")) > MAX_PREFERENCE:
                del environ[name]
        environ.pop("HTTP_UPGRADE", None)
        environ["HTTP_HOST"] = "localhost"
        environ["PATH_INFO"] = environ["PATH_INFO"] or "/"
        return served(environ, start)

    return called


class JsonResponse(Response):
    """JSON: nothing in its headers has to be fitted to the request, so that none are copied."""

    def get_wsgi_headers(self, environ: Any) -> Headers:
        return self.headers


def json_response(value: Any, status: int = 200) -> Response:
    """A JSON value; the newline at its end is for terminals."""
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return JsonResponse(body, status, NOSNIFF, content_type=JSON)
