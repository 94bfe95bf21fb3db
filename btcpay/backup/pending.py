"""Stores a backup that a browser has uploaded, until the owner confirms or refuses it.

Each uploaded backup has its own folder, beside the database. A process locks the folder
while it receives and examines the backup. So every other process can tell whether the
work still goes on.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import urlsplit

from btcpay.backup.address_counters import Move
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError
from btcpay.values.ids import ID_CHARACTERS, random_base62
from storage.database import sqlite_path

_IS_ID = re.compile(f"[0-9A-Za-z]{{{ID_CHARACTERS}}}").fullmatch


@dataclass(frozen=True)
class Report:
    """The result of examining an uploaded backup.

    `problem` says why the backup is refused; "" if it is accepted. `moves` say
    how far its address counters must be advanced. `programs` are the commands in the backup that
    receive events; they are not restored. `newest_invoice_ms` is the time of the newest
    invoice; 0 if there is none.
    """

    examined_ms: int
    problem: str = ""
    moves: tuple[Move, ...] = ()
    programs: tuple[str, ...] = ()
    newest_invoice_ms: int = 0


class PendingRestore:
    """The folder of one uploaded backup.

    `upload` is the path of the file that the browser sends. `copy` is the path of the
    examined copy. `id` is a random text that nobody can guess.
    """

    def __init__(self, folder: Path, id: str) -> None:
        self.id = id
        self.upload = folder / "upload.db"
        self.copy = folder / "copy.db"
        self._folder = folder
        self._report = folder / "report.json"
        self._lock = folder / "lock"
        self._held: TextIO | None = None

    def exists(self) -> bool:
        return self._folder.is_dir()

    def hold(self) -> None:
        """Locks the folder until `release` is called, or until this process ends."""
        lock = self._lock.open("a", encoding="ascii")
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for `is_held`, which takes a moment
        self._held = lock

    def release(self) -> None:
        if self._held:
            self._held.close()

    def is_held(self) -> bool:
        """True while a process receives or examines the backup."""
        try:
            with self._lock.open("a", encoding="ascii") as lock:
                # Shared, so that two requests which ask at once do not see each other.
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # it is gone, or another user's
            return False
        return False

    def report(self) -> Report | None:
        """Returns the result of the examination; None if it has not ended."""
        try:
            text = self._report.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        fields: dict[str, Any] = json.loads(text)
        moves = tuple(_move_of(move) for move in fields["moves"])
        programs = tuple(fields["programs"])
        return Report(**fields | {"moves": moves, "programs": programs})

    def write_report(self, report: Report) -> None:
        part = self._report.with_suffix(".part")
        part.write_text(json.dumps(asdict(report)), encoding="utf-8")
        os.replace(part, self._report)

    def discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _move_of(fields: dict[str, Any]) -> Move:
    used = tuple(fields["used"])
    addresses = tuple(fields["addresses"])
    return Move(**fields | {"used": used, "addresses": addresses})


def begin(settings: Settings) -> PendingRestore:
    """Creates and locks the folder of a new upload.

    Removes the folders of earlier uploads. Raises CommandError while another backup is
    being received or examined.
    """
    if discard_idle(settings):
        raise CommandError("another backup is being received or examined: wait for it")
    parent, beginning = _place(settings)
    id = random_base62(ID_CHARACTERS)
    folder = parent / f"{beginning}{id}"
    folder.mkdir(mode=0o700)
    pending = PendingRestore(folder, id)
    pending.hold()
    return pending


def find(settings: Settings, id: str) -> PendingRestore | None:
    """Returns the uploaded backup with this id; None if there is none."""
    if not _IS_ID(id):
        return None
    parent, beginning = _place(settings)
    pending = PendingRestore(parent / f"{beginning}{id}", id)
    if pending.exists():
        return pending
    return None


def discard_idle(settings: Settings) -> list[PendingRestore]:
    """Removes each uploaded backup that no process receives or examines.

    Returns the other uploaded backups.
    """
    parent, beginning = _place(settings)
    held = []
    for folder in parent.glob(f"{beginning}*"):
        pending = PendingRestore(folder, folder.name.removeprefix(beginning))
        if pending.is_held():
            held.append(pending)
        else:
            pending.discard()
    return held


class _Place(NamedTuple):
    """The folder of all pending restores, and how their names begin."""

    folder: Path
    prefix: str


def _place(settings: Settings) -> _Place:
    """Returns where the pending restores of this database are."""
    url = settings.database_url
    path = sqlite_path(url)
    if path:
        return _Place(path.parent, f".{path.name}.restore-")
    parts = urlsplit(url)  # without the password, which a digest would help to guess
    where = f"{parts.hostname} {parts.port} {parts.path}"
    digest = hashlib.sha256(where.encode()).hexdigest()[:16]
    return _Place(Path(tempfile.gettempdir()), f".blocktill-{digest}.restore-")
