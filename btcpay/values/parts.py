"""The modules that optional parts bring: `btcpay.PARTS` is the one place that names them."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from btcpay import PARTS


@cache
def brought(seam: str) -> tuple[ModuleType, ...]:
    """Each part's module of this name, such as `blueprint` or `transport`, in the table's order."""
    found = (f"{part}.{seam}" for part in PARTS if find_spec(f"{part}.{seam}"))
    return tuple(import_module(name) for name in found)
