"""Room for the proofs of one run, and how they are written down."""

import json
import threading
from collections.abc import Callable
from typing import Any

from btcpay.errors import OutOfQuota

# Some five thousand proofs of ordinary size: the rest is for the next run.
MOST_BYTES = 16_000_000


class Room:
    """Thread safe."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._left, self._lock = most_bytes, threading.Lock()

    def require(self) -> None:
        """Raises OutOfQuota when there is none left."""
        if self._left <= 0:
            raise OutOfQuota("one run keeps no more proofs than it has room for")

    def put(self, make: Callable[[], dict[str, Any]]) -> str:
        """The document that `make` makes, as text. One at a time: each may be megabytes."""
        with self._lock:
            text = json.dumps(make())
            self._left -= len(text)
            return text
