"""The shapes that explorers' JSON must have: `schemas.esplora`, loaded when the first of it comes.

A check that finds nothing new is told a hash and no more: loading what reads JSON would be a fifth
of what it takes.
"""

from functools import cache
from importlib import import_module
from typing import Any

from btcpay.values.errors import FetchError

STRANGE = "answered what Esplora does not"


def shaped(name: str, value: Any) -> dict[str, Any]:
    """The value as the schema of that name reads it. Raises FetchError for any other."""
    schema, wrong = _schema(name)
    try:
        loaded: dict[str, Any] = schema.load(value)
    except wrong as error:
        raise FetchError(f"{STRANGE}: {str(error.messages)[:200]}") from error
    return loaded


@cache
def _schema(name: str) -> tuple[Any, Any]:
    """It, and what it raises."""
    module = import_module("schemas.esplora")
    return getattr(module, name)(), module.ValidationError
