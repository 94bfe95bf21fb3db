"""Registers paths in Flask blueprints, and builds JSON responses."""

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
# Keeps browsers from guessing another media type.
NOSNIFF = {"X-Content-Type-Options": "nosniff"}
_PREFERENCES = ("HTTP_ACCEPT_LANGUAGE", "HTTP_ACCEPT_ENCODING")
MAX_PREFERENCE = 500  # characters
NONE = "none"  # the endpoint of each path and method without a view


class Rest(PathConverter):
    """A URL converter of werkzeug that matches the remainder of any path.

    The remainder may be empty, and may contain slashes and line breaks.
    """

    part_isolating = False
    regex = "(?s:.*?)"


def add_path(
    blueprint: Blueprint,
    path: str,
    view: Callable[..., Any],
    name: str,
    method: str = "GET",
) -> None:
    """Registers a view for one HTTP method of a path.

    Flask does not add its automatic view for OPTIONS.
    """
    blueprint.add_url_rule(
        path,
        name,
        view,
        methods=[method],
        provide_automatic_options=False,
    )


def add_pages(
    blueprint: Blueprint,
    views: Iterable[tuple[str, str, Callable[..., Any]]],
) -> None:
    """Registers pages, each given as (method, path, view).

    If somebody appends a slash to the path of a GET page, the request is redirected to
    the path without the slash.
    """
    for method, path, view in views:
        # Flask's names of views may not contain a dot.
        name = f"{method} {path.replace('.', '_')}"
        add_path(blueprint, path, view, name, method)
        if method == "GET" and not path.endswith("/"):
            add_path(blueprint, f"{path}/", redirect_to_page, f"{name}/")


def redirect_to_page(**_: str) -> Response:
    """Redirects (308) to the path without its trailing slash, and keeps the query.

    The new URL is relative, since a reverse proxy may serve the application under a
    prefix.
    """
    last_segment = request.path.rstrip("/").rpartition("/")[2]
    url = f"../{quote(last_segment)}"
    query = request.query_string.decode("latin-1")
    if query:
        url += f"?{query}"
    return Response(status=308, headers={"Location": url, "Cache-Control": "no-store"})


def refuse_others(blueprint: Blueprint, *paths: str) -> None:
    """Adds a view for `paths` that refuses each request that no other view serves.

    Flask itself would refuse such a request outside of the blueprint. With this view,
    the blueprint's rate limits count the request, and the error response has the
    blueprint's format and headers. `<rest:rest>` in a path matches the remainder of any
    path.
    """

    def add(state: BlueprintSetupState) -> None:
        url_map = state.app.url_map
        url_map.converters["rest"] = Rest
        endpoint = f"{state.name_prefix}.{state.name}.{NONE}".lstrip(".")
        state.app.view_functions[endpoint] = refuse
        for path in paths:
            # A rule without methods matches all; Flask's `add_url_rule` would add GET.
            url_map.add(Rule(f"{state.url_prefix or ''}{path}", endpoint=endpoint))

    # Flask calls `add` when the blueprint is registered, which may set a URL prefix.
    blueprint.record(add)


def refuse(**_: str) -> NoReturn:
    """Raises MethodNotAllowed if the path has views for other methods, else NotFound."""
    allowed_methods: set[str] = set()
    for rule in current_app.url_map.iter_rules():
        if rule.rule == str(request.url_rule):
            # The rule of `refuse_others` itself has no methods.
            allowed_methods |= rule.methods or set()
    if allowed_methods:
        raise MethodNotAllowed(allowed_methods)
    raise NotFound


def normalize_http(application: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the WSGI application so that werkzeug's router accepts each request.

    Otherwise the router would refuse some requests before our rate limits count them:

    - A WebSocket handshake, which the router would refuse, becomes a plain GET.
    - An empty path, which the router would redirect, becomes `/`.
    - The header Host, which the router would refuse if it were malformed, becomes
      `localhost`. No code of ours uses this header.

    Also removes an Accept-Language or Accept-Encoding header that is longer than
    MAX_PREFERENCE, since it can take 70 ms to parse.
    """

    def serve(environ: dict[str, Any], start: Any) -> Any:
        for name in _PREFERENCES:
            if len(environ.get(name, "")) > MAX_PREFERENCE:
                del environ[name]
        environ.pop("HTTP_UPGRADE", None)
        environ["HTTP_HOST"] = "localhost"
        environ["PATH_INFO"] = environ["PATH_INFO"] or "/"
        return application(environ, start)

    return serve


class JsonResponse(Response):
    """A JSON response that is faster than werkzeug's own.

    Its headers do not depend on the request, so werkzeug need not copy and change them.
    """

    def get_wsgi_headers(self, environ: Any) -> Headers:
        return self.headers


def json_response(value: Any, status: int = 200) -> Response:
    """Returns the value as a JSON response, with a final newline for terminals."""
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return JsonResponse(body, status, NOSNIFF, content_type=JSON)
