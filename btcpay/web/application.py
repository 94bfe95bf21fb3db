"""Paths of a part of the service, and answers in JSON."""

from collections.abc import Callable
from typing import Any, NoReturn

import orjson
from flask import Blueprint, Response, current_app, request
from flask.blueprints import BlueprintSetupState
from werkzeug.routing import PathConverter, Rule

from btcpay.values.errors import MethodNotAllowed, NotFound

JSON = "application/json"
NONE = "none"  # the endpoint of whatever is not served


class Rest(PathConverter):
    """Any end of a path: none, too, or one that begins with a slash."""

    part_isolating = False
    regex = ".*?"


def add_path(
    blueprint: Blueprint, path: str, view: Callable[..., Any], name: str, method: str = "GET"
) -> None:
    """Serves one method of one path; any other is refused, OPTIONS too."""
    blueprint.add_url_rule(path, name, view, methods=[method], provide_automatic_options=False)


def refuse_others(blueprint: Blueprint, *paths: str) -> None:
    """Has the blueprint refuse what it does not serve at these paths, by whatever method.

    So its own door, errors and headers are those of such a request too. `<rest:rest>` in a path
    stands for any end of it.
    """

    def add(state: BlueprintSetupState) -> None:
        state.app.url_map.converters["rest"] = Rest
        endpoint = f"{state.name_prefix}.{state.name}.{NONE}".lstrip(".")
        state.app.view_functions[endpoint] = refuse
        for path in paths:
            state.app.url_map.add(Rule(f"{state.url_prefix}{path}", endpoint=endpoint))

    blueprint.record(add)


def refuse(**_: str) -> NoReturn:
    """404, or 405 where the path is served by other methods."""
    rules = [one for one in current_app.url_map.iter_rules() if one.rule == str(request.url_rule)]
    if allowed := set().union(*(one.methods or () for one in rules)):
        raise MethodNotAllowed("this path does not take that method", list(allowed))
    raise NotFound("there is nothing at this path")


def answer(value: Any, status: int = 200) -> Response:
    """A JSON value; the newline at its end is for terminals."""
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return Response(body, status, content_type=JSON)
