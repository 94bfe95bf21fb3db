"""The query strings of list operations."""

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from btcpay.values.errors import InvalidRequest
from btcpay.values.statuses import InvoiceStatus
from schemas.requests import load

STATUSES = [status.value for status in InvoiceStatus]


class Limit(fields.Field[int]):
    """The query parameter `limit`: a whole number from 1 to 100 in plain digits."""

    def __init__(self) -> None:
        metadata = {
            "minimum": 1,
            "maximum": 100,
            "default": 50,
            "description": "How many of the newest items to return.",
        }
        super().__init__(load_default=50, metadata=metadata)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        is_number = re.fullmatch("[0-9]{1,20}", value)
        if not is_number or not 1 <= int(value) <= 100:
            raise ValidationError("must be a whole number from 1 to 100")
        return int(value)


class Query(Schema):
    """The query string of a list operation. Unknown parameters are ignored."""

    class Meta:
        unknown = EXCLUDE

    limit = Limit()


class InvoiceQuery(Query):
    """The query string of list-invoices."""

    status = fields.String(
        validate=validate.OneOf(
            STATUSES, error="must be one of " + ", ".join(STATUSES)
        ),
        metadata={"description": "Only invoices of this status."},
    )


class PaymentQuery(Query):
    """The query string of list-payments."""

    invoice_id = fields.String(
        metadata={"description": "Only payments that settled this invoice."}
    )


LIST_QUERY = Query()
INVOICE_QUERY = InvoiceQuery()
PAYMENT_QUERY = PaymentQuery()


def load_query(schema: Schema, parameters: Mapping[str, list[str]]) -> dict[str, Any]:
    """Returns the validated parameters of a query string.

    Raises InvalidRequest if a known parameter is invalid or given more than once.
    """
    for name in schema.fields:
        if len(parameters.get(name, ())) > 1:
            raise InvalidRequest(f"{name} must be given once")
    first_values = {name: values[0] for name, values in parameters.items()}
    return load(schema, first_values)
