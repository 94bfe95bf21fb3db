"""The modules that optional parts bring: `btcpay.PARTS` is the one place that names them."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from btcpay import PARTS


@cache
def brought(seam: str) -> tuple[ModuleType, ...]:
    """Each part's module of this name, such as `blueprint` or `transport`, in the table's order."""
    found = (f"{part}.{seam}" for part in PARTS if find_spec(f"{part}.{seam}"))
    return tuple(import_module(name) for name in found)


def offered(seam: str, name: str) -> list[Callable[..., Any]]:
    """The functions of this name in parts' modules of that one; a part may do without."""
    return [getattr(part, name) for part in brought(seam) if hasattr(part, name)]
