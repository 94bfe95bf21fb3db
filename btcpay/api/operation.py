"""One of the eight operations: a line of the specification's section 4, as app.py has it."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Response
from marshmallow import Schema

from schemas import resources as shows

ROOT = "/api/v1"


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    scope: str
    view: Callable[..., Response]
    shows: type[shows.Resource]
    accepts: type[Schema] | None = None
    lists: bool = False
    body_required: bool = False
    priced: bool = False
