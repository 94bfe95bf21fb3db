"""The append-only file of everything that happened to the chain: one JSON object a line.

`{"block": hex}`, `{"tx": hex, "at": unix}`, or for a reorganisation
`{"fork_height": int, "blocks": [hex], "at": unix}`.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from btcpay.sandbox.errors import JournalError


class Journal:
    """Holds the file and its lock until closed. Raises JournalError when another sandbox has it."""

    def __init__(self, path: Path):
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise JournalError(f"another sandbox is running on {path}") from None

    def load(self) -> list[dict[str, Any]]:
        """All events so far; cuts a torn last line off the file."""
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        os.ftruncate(self._fd, len(whole))
        events = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                events.append(json.loads(line))
            except ValueError:
                what = f"line {number} of {self._path} is unreadable"
                raise JournalError(f"{what}; remove the file to begin a new chain") from None
        return events

    def append(self, event: dict[str, Any]) -> None:
        """Survives a killed process, not a loss of power."""
        os.write(self._fd, json.dumps(event).encode() + b"\n")

    def close(self) -> None:
        os.close(self._fd)
