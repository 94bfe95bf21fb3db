"""Defines API requests (`Call`) and operations, and finds the API key of a request."""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import orjson
from flask import Response, after_this_request, g, request
from marshmallow import Schema

from btcpay.api import idempotency
from btcpay.merchants.keys import caller_of
from btcpay.values.errors import NotFound, Unauthorized
from btcpay.values.ids import is_id
from btcpay.web.admission import count_request, failed_auth_windows
from btcpay.web.body import read_json, sha256
from btcpay.web.paths import JSON, JsonResponse, json_response
from btcpay.web.service import Service
from schemas import requests as accepts
from schemas import resources as shows
from schemas.queries import load_query
from schemas.resources import Resource, Resources
from storage.queries import keys
from storage.queries.keys import Caller
from storage.statement import Typed
from storage.values import Values

T = TypeVar("T")
IGNORED_HEADER = "X-Ignored-Fields"
MOST_NAMES = 20
# A field name that can be listed in a header: printable ASCII without a comma, since commas
# separate the names, and short enough for every proxy.
_NAME = re.compile(r"[!-+\--~](?:[ -+\--~]{0,98}[!-+\--~])?")
ROOT = "/api/v1"
_KINDS = {"inv": "invoice", "lnk": "payment link"}  # by the prefix of their ids


class Call(NamedTuple):
    """An API request with a valid key.

    `operation` is the operation's id, a key of OPERATIONS in app.py.
    """

    service: Service
    caller: Caller
    operation: str

    @property
    def merchant_id(self) -> int:
        """The merchant to whom the API key belongs. A request sees only that merchant's data."""
        return self.caller.merchant_id

    @property
    def resources(self) -> Resources:
        return self.service.resources

    def get_or_404(self, query: Typed[T], prefix: str, id: str) -> T:
        """Returns the merchant's row with this id.

        `query` has the parameters `id` and `merchant_id`. `prefix` is that of the ids,
        such as "inv". Raises NotFound (status 404) if there is no such row, or if it
        belongs to another merchant.
        """
        row = None
        if is_id(prefix, id):
            row = self.service.db.get_or_none(
                query, id=id, merchant_id=self.merchant_id
            )
        if row is None:
            raise NotFound(f"there is no {_KINDS[prefix]} with this id")
        return row

    def list_rows(self, resource: Resource, query: Any, **values: Any) -> Response:
        """Returns a response with the merchant's rows as a JSON list of resources.

        `query` selects the rows; `values` are its other parameters.
        """
        db = self.service.db
        columns, rows = db.json_rows(query, merchant_id=self.merchant_id, **values)
        return json_response(resource.envelope(columns, rows))

    def query(self, schema: Schema) -> dict[str, Any]:
        return load_query(schema, request.args.to_dict(flat=False))

    def body(self, schema: Schema, empty: bytes | None = None) -> dict[str, Any]:
        """Returns the JSON body, validated by `schema`.

        If the body is empty, `empty` is used instead. Unknown fields are ignored,
        and listed in the response's header X-Ignored-Fields. Raises InvalidRequest if
        the body is not JSON or a field is invalid, and PayloadTooLarge if the body
        exceeds the maximum of the settings.
        """
        g.body = read_json(empty)
        if isinstance(g.body, dict):
            note_ignored(g.body, schema.fields)
        return accepts.load(schema, g.body)

    def create_once(
        self,
        prepare: Callable[[], Any],
        make: Callable[[Any], dict[str, Any]],
    ) -> Response:
        """Creates a resource, and returns the response with the status 201.

        First `prepare` runs, outside of a database transaction. Then `make` runs with
        the result of `prepare`, inside a database transaction: it stores the resource
        and returns its JSON object. A retry with the same Idempotency-Key gets the
        stored response, and runs neither. Raises Conflict if the key is in use, or was
        used with a different body.
        """
        service = self.service
        text, replayed = idempotency.create_once(
            service.db,
            self._idempotency_subject(),
            service.now(),
            prepare,
            lambda prepared: orjson.dumps(make(prepared)).decode(),
        )
        response = JsonResponse(f"{text}\n", 201, content_type=JSON)
        if replayed:
            response.headers["Idempotent-Replayed"] = "true"
        return response

    def _idempotency_subject(self) -> Values | None:
        """Returns the values by which a retry of this request is recognised.

        Returns None if the request has no header Idempotency-Key. Raises InvalidRequest
        if the header is invalid.
        """
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return None
        return {
            "merchant_id": self.merchant_id,
            "operation": self.operation,
            "idempotency_key": idempotency.check_key(key),
            "body_sha256": sha256(g.body),
        }


def key_of(service: Service, schemes: Sequence[str] = ("bearer",)) -> Caller:
    """Returns the API key in the request's Authorization header.

    `schemes` are the accepted authentication schemes in lower case. Raises Unauthorized
    if the key is missing, invalid, or sent with another scheme. Except for a missing
    key, such a failure counts towards a rate limit of the client's address. Raises
    RateLimited if that limit is reached.
    """
    header = request.environ.get("HTTP_AUTHORIZATION", "").strip()
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    is_known_scheme = scheme.lower() in schemes
    if is_known_scheme and secret:
        now = service.now()
        caller = caller_of(service.db, secret, now)
        if caller:
            service.notes.note(keys.USED, caller.key_id, now)
            return caller
    is_missing = not scheme or (is_known_scheme and not secret)
    if is_missing:
        raise Unauthorized("send the API key as `Authorization: Bearer KEY`")
    count_request(service, failed_auth_windows())
    if is_known_scheme:
        raise Unauthorized("the API key is not valid")
    raise Unauthorized(
        "the API key cannot be read: send it as `Authorization: Bearer KEY`"
    )


def unknown_names(
    names: Iterable[str],
    known_names: Container[str],
    before: Iterable[str] = (),
) -> list[str]:
    """Returns `before`, followed by the names that are not in `known_names`.

    `before` are unknown names that were found earlier. Each name is returned once.
    Names that an HTTP header cannot contain are left out, and so are all names after
    the first MOST_NAMES.
    """
    unknown = list(before)
    for name in names:
        is_noted = name in known_names or name in unknown
        if is_noted or not _NAME.fullmatch(name):
            continue
        if len(unknown) == MOST_NAMES:
            break
        unknown.append(name)
    return unknown


def note_ignored(names: Iterable[str], known_names: Container[str]) -> None:
    """Lists the names that the operation does not know in a header of the response.

    The header is X-Ignored-Fields. An error response has it too.
    """
    ignored = unknown_names(names, known_names, g.get("ignored", ()))
    if ignored:
        g.ignored = ignored
        after_this_request(_add_ignored_header)


def _add_ignored_header(response: Response) -> Response:
    response.headers[IGNORED_HEADER] = ", ".join(g.ignored)
    return response


@dataclass(frozen=True)
class Operation:
    """An operation of the API.

    `scope` is the scope that the API key must have, "read" or "write". `shows` is the
    schema of the resource in the response. If `lists` is True, the response is a list
    of such resources. `accepts` is the schema of the body, or of the query string of a
    GET request. `body_required` is False if the body may be empty. `priced` is True if
    the operation needs the exchange rate, and fails without it.
    """

    method: str
    path: str
    scope: str
    view: Callable[..., Response]
    shows: type[shows.Resource]
    accepts: type[Schema] | None = None
    lists: bool = False
    body_required: bool = False
    priced: bool = False
