"""One line that says how the sandbox is; on a terminal it changes in its place."""

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import requests

from btcpay.cli.context import say

TIMEOUT_S = 1
CLEAR_TO_END = "\x1b[K"  # ECMA-48, EL
USUAL_COLUMNS = 80


class StatusLine:
    """Whoever reads a terminal sees how all is now; whoever reads a pipe, what has changed."""

    def __init__(self, chain_url: str, service_url: str, log: Path) -> None:
        self._state_url, self._ready_url = f"{chain_url}/sandbox/state", f"{service_url}/readyz"
        self._log, self._read_bytes, self._log_lines = log, 0, 0
        self._told = {"explorer": "up", "price": "up"}

    def __enter__(self) -> "StatusLine":
        self.say("starting...")
        return self

    def __exit__(self, *_: object) -> None:
        self.say("")

    def say(self, text: str) -> None:
        """While there is nothing to ask; on a terminal only."""
        if sys.stderr.isatty():
            _show(text)

    def update(self, now: datetime) -> None:
        """Asks the sandbox and the service; one that does not answer changes nothing."""
        try:
            state = requests.get(self._state_url, timeout=TIMEOUT_S).json()
            ready = requests.get(self._ready_url, timeout=TIMEOUT_S).json()
        except (requests.RequestException, ValueError):
            return
        if sys.stderr.isatty():
            self._count_lines()
            checked_at = ready.get("check", {}).get("checked_at")
            _show(_sentence(state, checked_at, now, self._log_lines))
            return
        switches = {name: state[name] for name in self._told}
        for name in [name for name, told in self._told.items() if switches[name] != told]:
            say(f"the {name} is {switches[name]}")
        self._told = switches

    def _count_lines(self) -> None:
        with self._log.open("rb") as log:
            log.seek(self._read_bytes)
            new = log.read()
        self._read_bytes += len(new)
        self._log_lines += new.count(b"\n")


def _sentence(state: dict[str, Any], checked_at: str | None, now: datetime, log_lines: int) -> str:
    """79 letters at most while the log is short, for a terminal of 80 columns."""
    parts = [
        f"block {state['height']}",
        f"{state['waiting']} waiting",
        f"explorer {_in_capitals_when_down(state['explorer'])}",
        f"price {state['usd'] if state['price'] == 'up' else 'DOWN'}",
        f"checked {'never' if checked_at is None else _ago(now, checked_at)}",
        f"log {log_lines}",
    ]
    return ", ".join(parts)


def _in_capitals_when_down(switch: str) -> str:
    return switch.upper() if switch == "down" else switch


def _ago(now: datetime, checked_at: str) -> str:
    age_s = max(0, (now - datetime.fromisoformat(checked_at)) // timedelta(seconds=1))
    return f"{age_s} s ago" if age_s < 600 else f"{age_s // 60} min ago"


def _show(text: str) -> None:
    """In the place of what was shown before; cut, since what wraps could not be taken back."""
    columns = os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS
    sys.stderr.write(f"\r{text[: columns - 1]}{CLEAR_TO_END}")
    sys.stderr.flush()
