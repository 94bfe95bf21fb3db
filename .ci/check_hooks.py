"""Compares every part with the page of hooks: a name that is misspelt in either fails."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from btcpay import hooks  # noqa: E402 - of this checkout

for kind in hooks.BY_MODULE.values():
    hooks.of(kind)
