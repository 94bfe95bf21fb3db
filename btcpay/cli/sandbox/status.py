"""One line that says how the sandbox is; on a terminal it changes in its place."""

import contextlib
import os
import sys
import termios
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import requests
from peewee import PeeweeException

from btcpay.cli.context import say
from storage.database import Database
from storage.queries import tallies

TIMEOUT_S = 1
CLEAR_TO_END = "\x1b[K"  # ECMA-48, EL
USUAL_COLUMNS = 80
ECHO_FLAGS = 3  # the place of the local modes in what termios.tcgetattr answers


class LastCheck:
    """When the last check ended, and how: read from the totals that each check adds to."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen = self._totals()
        self._ended_at: datetime | None = None
        self._failed = False

    def look(self, now: datetime) -> None:
        """A check that has ended since the last look ended now; a database away changes nothing."""
        try:
            totals = self._totals()
        except PeeweeException:
            return
        if totals != self._seen:
            self._ended_at, self._failed = now, totals["complete"] == self._seen["complete"]
        self._seen = totals

    def told(self, now: datetime, log: Path) -> str:
        """The time since it ended, and where to read why it failed."""
        if self._ended_at is None:
            return "not checked yet"
        ago = _ago(now - self._ended_at)
        return f"check FAILED {ago}, see {log}" if self._failed else f"checked {ago}"

    def _totals(self) -> dict[str, int]:
        rows = [row for row in self._db.rows(tallies.ALL) if row["name"] == "checks"]
        return {"complete": 0, "incomplete": 0} | {row["label"]: row["total"] for row in rows}


class StatusLine:
    """A reader of a terminal sees the state of now; a reader of a pipe sees each change."""

    def __init__(self, chain_url: str, check: LastCheck, log: Path) -> None:
        self._state_url, self._check = f"{chain_url}/sandbox/state", check
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
            _show([text])

    def update(self, now: datetime) -> None:
        """Asks the chain and the database; what does not answer changes nothing."""
        try:
            state = requests.get(self._state_url, timeout=TIMEOUT_S).json()
        except (requests.RequestException, ValueError):
            return
        if sys.stderr.isatty():
            self._count_lines()
            self._check.look(now)
            _show([self._check.told(now, self._log), *_parts(state), *self._log_part()])
            return
        switches = {name: state[name] for name in self._told}
        for name in [name for name, told in self._told.items() if switches[name] != told]:
            how = switches[name]
            say(f"the {name} lies" if how == "lies" else f"the {name} is {how}")
        self._told = switches

    def _log_part(self) -> list[str]:
        count = self._log_lines
        return [f"log: {count} line{'' if count == 1 else 's'}"] if count else []

    def _count_lines(self) -> None:
        with self._log.open("rb") as log:
            log.seek(self._read_bytes)
            new = log.read()
        self._read_bytes += len(new)
        self._log_lines += new.count(b"\n")


def _parts(state: dict[str, Any]) -> list[str]:
    """What matters first: a narrow terminal shows only as many of them as fit."""
    price = state["usd"].removesuffix(".00") if state["price"] == "up" else "DOWN"
    return [
        f"explorer {'up' if state['explorer'] == 'up' else state['explorer'].upper()}",
        f"price {price}",
        f"block {state['height']}",
        f"{state['waiting']} waiting",
    ]


def _ago(age: timedelta) -> str:
    age_s = max(0, age // timedelta(seconds=1))
    return f"{age_s} s ago" if age_s < 600 else f"{age_s // 60} min ago"


def _show(parts: list[str]) -> None:
    """In the place of what was shown before; never wider, since what wraps cannot be taken back."""
    columns = os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS
    text = fitting(parts, columns - 1)
    sys.stderr.write(f"\r{text}{CLEAR_TO_END}")
    sys.stderr.flush()


def fitting(parts: list[str], columns: int) -> str:
    """As many of the parts as fit, from the first; of one that is too long alone, its beginning."""
    shown = parts[0]
    for part in parts[1:]:
        if len(shown) + len(part) + 2 > columns:
            break
        shown = f"{shown}, {part}"
    return shown[:columns]


@contextlib.contextmanager
def unechoed() -> Iterator[None]:
    """While it lasts the terminal shows no typed letters: they would stand on the status line.

    What was typed meanwhile is thrown away, so that the shell does not run it afterwards.
    """
    if not _is_ours():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    silent = [*before]
    silent[ECHO_FLAGS] = before[ECHO_FLAGS] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal was closed
            termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)


def _is_ours() -> bool:
    """Whether a terminal sends its letters to us: a process in the background may not change it."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
