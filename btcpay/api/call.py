"""One authenticated API request, and the description of an operation."""

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
# A field name that can be listed in a header: printable ASCII with no comma, since commas separate
# the names, and short enough for every proxy.
_NAME = re.compile(r"[!-+\--~](?:[ -+\--~]{0,98}[!-+\--~])?")
ROOT = "/api/v1"
_KINDS = {"inv": "invoice", "lnk": "payment link"}  # by the prefix of their ids


class Call(NamedTuple):
    """An API request with a valid key. `operation` is its id in OPERATIONS of app.py."""

    service: Service
    caller: Caller
    operation: str

    @property
    def merchant_id(self) -> int:
        """The merchant of the API key. All data is limited to this merchant."""
        return self.caller.merchant_id

    @property
    def resources(self) -> Resources:
        return self.service.resources

    def get_or_404(self, query: Typed[T], prefix: str, id: str) -> T:
        """Returns the merchant's row with this id. Raises NotFound."""
        row = None
        if is_id(prefix, id):
            row = self.service.db.get_or_none(
                query, id=id, merchant_id=self.merchant_id
            )
        if row is None:
            raise NotFound(f"there is no {_KINDS[prefix]} with this id")
        return row

    def list_rows(self, resource: Resource, query: Any, **values: Any) -> Response:
        """Returns the response with the rows of the SELECT `query` as a list of resources."""
        db = self.service.db
        columns, rows = db.json_rows(query, merchant_id=self.merchant_id, **values)
        return json_response(resource.envelope(columns, rows))

    def query(self, schema: Schema) -> dict[str, Any]:
        return load_query(schema, request.args.to_dict(flat=False))

    def body(self, schema: Schema, empty: bytes | None = None) -> dict[str, Any]:
        """Returns the validated JSON body.

        If `empty` is given, it replaces a missing body.
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
        """Returns a 201 response with the resource that `make` stores and returns.

        `make` runs once for each Idempotency-Key; a retry gets the stored response.
        Before it `prepare` runs, outside the transaction; its result is passed to
        `make`.
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
        """Returns the values that identify a request that is repeated with its Idempotency-Key.

        Returns None if it has no such header. Raises InvalidRequest.
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
    """Returns the API key that the request carries. Raises Unauthorized.

    An invalid key counts towards the limit of failures of the client's address. A
    missing key does not.
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
    if not scheme or (is_known_scheme and not secret):
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
    """Returns `before` and those of `names` that are not in `known_names`, at most MOST_NAMES.

    `before` are unknown names that were found earlier. Each name is returned once.
    Names that an HTTP header cannot contain are omitted.
    """
    unknown = list(before)
    for name in names:
        if name in known_names or name in unknown or not _NAME.fullmatch(name):
            continue
        if len(unknown) == MOST_NAMES:
            break
        unknown.append(name)
    return unknown


def note_ignored(names: Iterable[str], known_names: Container[str]) -> None:
    """Lists names that the operation does not know in the response's X-Ignored-Fields header.

    The header is also sent with errors.
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

    `shows`: the schema of the response; with `lists` the response is a list of them.
    `accepts`: the schema of the body, or of a GET request's query string.
    `priced`: True if the operation needs a price.
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
