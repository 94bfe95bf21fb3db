"""Defines API requests (`Call`) and operations, and finds the API key of a request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import orjson
from flask import Response, g, request
from marshmallow import Schema

from btcpay.api import idempotency
from btcpay.api.ignored_names import note_ignored
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

        `query` has the parameters `id` and `merchant_id`. `prefix` is the prefix of the
        ids of such rows, such as "inv". Raises NotFound (status 404) if there is no such
        row, or if it belongs to another merchant.
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

        `query` selects the rows. It gets the parameter `merchant_id` and those in
        `values`.
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

        Stores the whole body in `g.body`, where `create_once` finds it.
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

        Call `body` before this method, which compares the bodies of retries.
        """
        service = self.service
        answer = idempotency.create_once(
            service.db,
            subject=self._idempotency_subject(),
            now=service.now(),
            prepare=prepare,
            make=lambda prepared: orjson.dumps(make(prepared)).decode(),
        )
        response = JsonResponse(f"{answer.text}\n", 201, content_type=JSON)
        if answer.is_replayed:
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
    """Returns the valid API key that the request has in its Authorization header.

    `schemes` are the accepted authentication schemes in lower case.

    Raises Unauthorized if the key is missing, invalid, or sent with another scheme.
    Invalid keys and other schemes count towards a rate limit of the client's address.
    Raises RateLimited instead if that limit is reached.
    """
    header = request.environ.get("HTTP_AUTHORIZATION", "").strip()
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    is_known_scheme = scheme.lower() in schemes
    is_missing = not scheme or (is_known_scheme and not secret)
    if is_missing:
        raise Unauthorized("send the API key as `Authorization: Bearer KEY`")
    if not is_known_scheme:
        count_request(service, failed_auth_windows())
        raise Unauthorized(
            "the API key cannot be read: send it as `Authorization: Bearer KEY`"
        )
    now = service.now()
    caller = caller_of(service.db, secret, now)
    if caller is None:
        count_request(service, failed_auth_windows())
        raise Unauthorized("the API key is not valid")
    service.notes.note(keys.USED, caller.key_id, now)
    return caller


@dataclass(frozen=True)
class Operation:
    """An operation of the API.

    - `path`: the path below ROOT, such as `/invoices/<id>`.
    - `scope`: the scope that the API key must have, "read" or "write".
    - `view`: the function that is called with a Call, and with the id in the path if
      there is one. It returns the response.
    - `shows`: the schema of the resource in the response.
    - `accepts`: the schema of the body, or of the query string of a GET request.
    - `lists`: True if the response is a list of resources.
    - `body_required`: False if the body may be empty.
    - `priced`: True if the operation needs the exchange rate, and fails without it.
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
