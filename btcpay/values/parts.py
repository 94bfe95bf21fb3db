"""The modules that optional parts bring: `btcpay.PARTS` is the one place that names them."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from btcpay import PARTS


def brought(seam: str) -> list[ModuleType]:
    """Each part's module of this name, such as `blueprint` or `transport`, in the table's order."""
    return [import_module(f"{part}.{seam}") for part in PARTS if find_spec(f"{part}.{seam}")]
