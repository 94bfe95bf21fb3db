"""Checks the names of the parts' hooks: fails if a part or btcpay/hooks.py misspells one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from btcpay import hooks  # noqa: E402 - this checkout's, see above

for kind in hooks.BY_MODULE.values():
    hooks.of(kind)
