"""One authenticated request to an operation, as its view has it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson
from flask import g, request
from marshmallow import Schema

from btcpay.api import idempotency
from btcpay.merchants.keys import Caller
from btcpay.web import ignored_fields
from btcpay.web.application import Answer, answer
from btcpay.web.body import read_json, sha256
from btcpay.web.errors import JSON
from btcpay.web.service import Service
from schemas import requests as accepts
from schemas.resources import Resource, Resources
from storage.database import Row


class Call(NamedTuple):
    service: Service
    caller: Caller
    operation: str

    @property
    def merchant_id(self) -> int:
        """The merchant of the key: all data is scoped to it."""
        return self.caller.merchant_id

    @property
    def resources(self) -> Resources:
        return self.service.resources

    def row(self, query: Any, **values: Any) -> Row | None:
        return self.service.db.row(query, merchant_id=self.merchant_id, **values)

    def only(self, query: Any, **values: Any) -> Row:
        return self.service.db.only(query, merchant_id=self.merchant_id, **values)

    def listed(self, resource: Resource, query: Any, **values: Any) -> Answer:
        """The list envelope around the rows of a SELECT."""
        found = self.service.db.packed(query, merchant_id=self.merchant_id, **values)
        return answer(resource.listed(*found))

    def query(self, schema: Schema) -> dict[str, Any]:
        return accepts.load_query(schema, request.args.to_dict(flat=False))

    def body(self, schema: Schema, empty: bytes | None = None) -> dict[str, Any]:
        """The validated JSON body; `empty` stands for a missing body, if that is allowed."""
        g.body = read_json(empty)
        if isinstance(g.body, dict):
            ignored_fields.note(g.body, schema.fields)
        return accepts.load(schema, g.body)

    def once(self, prepare: Callable[[], Any], make: Callable[[Any], dict[str, Any]]) -> Answer:
        """201 with what `make` stores and returns, exactly once for an Idempotency-Key.

        `prepare` runs first, outside the transaction; `make` gets what it returned.
        """
        service = self.service
        text, replayed = idempotency.once(
            service.db,
            self._subject(),
            service.now(),
            prepare,
            lambda prepared: orjson.dumps(make(prepared)).decode(),
        )
        response = Answer(f"{text}\n", 201, content_type=JSON)
        if replayed:
            response.headers["Idempotent-Replayed"] = "true"
        return response

    def _subject(self) -> idempotency.Subject | None:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return None
        checked = idempotency.check_key(key)
        digest = sha256(g.body)
        return idempotency.Subject(self.merchant_id, self.operation, checked, digest)
