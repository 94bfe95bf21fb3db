"""The field types of the API: strict when loaded, exact when dumped."""

import re
from decimal import Decimal
from typing import Any

from marshmallow import ValidationError, fields
from orjson import Fragment

from btcpay.values.times import iso_ms

_NO_SCALAR = re.compile("[\x00\ud800-\udfff]")
# Half of the smallest double. Clients that use doubles would read a number up to this as 0.
_ZERO = Decimal(2) ** -1075
# for JSON Schema; JSON in UTF-8 cannot contain lone surrogates
NO_NUL = r"^[^\u0000]*$"


def says(description: str, *examples: Any) -> dict[str, Any]:
    """Returns the `metadata` argument of a field: description and examples for OpenAPI."""
    return {"metadata": {"description": description, "examples": list(examples)}}


def maybe(description: str, *examples: Any) -> dict[str, Any]:
    """Returns the arguments of a field that may be null: those of `says`, and `allow_none`."""
    return says(description, *examples) | {"allow_none": True}


class Text(fields.String):
    """A JSON string of Unicode scalar values, none of them U+0000.

    It has at most `max_length` characters; None means no limit.
    """

    def __init__(self, max_length: int | None = None, **kwargs: Any) -> None:
        limits: dict[str, Any] = {}
        if max_length:
            limits = {"maxLength": max_length, "pattern": NO_NUL}
        super().__init__(metadata=limits | kwargs.pop("metadata", {}), **kwargs)
        self.max_length = max_length

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError("must be a string")
        if _NO_SCALAR.search(value):
            raise ValidationError("must not contain U+0000 or lone surrogates")
        if self.max_length is not None and len(value) > self.max_length:
            raise ValidationError(f"must be at most {self.max_length} characters")
        return value


class Number(fields.Field[Decimal]):
    """A JSON number above 0 and at most `maximum`, loaded as an exact Decimal.

    The database stores the Decimal's text, which is a JSON number and is dumped
    unchanged.
    """

    def __init__(self, maximum: int | None = None, **kwargs: Any) -> None:
        limits: dict[str, Any] = {}
        if maximum:
            limits = {"exclusiveMinimum": 0, "maximum": maximum}
        super().__init__(metadata=limits | kwargs.pop("metadata", {}), **kwargs)
        self.maximum = maximum

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Decimal:
        if not isinstance(value, Decimal):
            raise ValidationError("must be a number")
        # Comparing a NaN would raise an error, so the conditions are checked in this order.
        is_positive = value.is_finite() and value > _ZERO
        is_too_much = is_positive and self.maximum and value > self.maximum
        if not is_positive or is_too_much:
            raise ValidationError(
                f"must be greater than 0 and at most {self.maximum:,}"
            )
        return value

    @staticmethod
    def to_json(value: str | Decimal) -> Fragment:
        return Fragment(str(value))


class Timestamp(fields.Field[Any]):
    """A time, stored in milliseconds since 1970 UTC.

    It is dumped as ISO 8601 with milliseconds and a trailing Z.
    """

    to_json = staticmethod(iso_ms)


class HostedUrl(Text):
    """The URL of a hosted page: the service's root URL, `path`, and the row's id."""

    def __init__(self, path: str, **kwargs: Any) -> None:
        metadata = {"format": "uri"} | kwargs.pop("metadata", {})
        super().__init__(metadata=metadata, **kwargs)
        self.path = path
