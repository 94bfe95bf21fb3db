"""Stores a backup that a browser has uploaded, until the owner confirms or refuses it.

Each uploaded backup has its own folder. A process locks the folder while it receives and
examines the backup. So every other process can tell whether the work still goes on.
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
    """The result of examining an uploaded backup. Times are in Unix milliseconds.

    - `problem`: why the backup is refused; "" if it is accepted.
    - `moves`: how far the backup's address counters must be advanced.
    - `programs`: the commands in the backup that receive events; they are not restored.
    - `newest_invoice_ms`: the time of the newest invoice; 0 if there is none.
    """

    examined_ms: int
    problem: str = ""
    moves: tuple[Move, ...] = ()
    programs: tuple[str, ...] = ()
    newest_invoice_ms: int = 0


class PendingRestore:
    """The folder of one uploaded backup.

    `upload` is the path of the file that the browser sends. `copy` is the path of the
    examined copy. `id` is the end of the folder's name: a random text that nobody can
    guess.
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
        """Unlocks the folder if this process has locked it."""
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
        except OSError:  # the folder is gone, or belongs to another user
            return False
        return False

    def report(self) -> Report | None:
        """Returns the result of the examination; None if it has not ended."""
        try:
            text = self._report.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        fields: dict[str, Any] = json.loads(text)
        # JSON has lists in place of tuples and objects in place of moves.
        fields["moves"] = tuple(_move_of(move) for move in fields["moves"])
        fields["programs"] = tuple(fields["programs"])
        return Report(**fields)

    def write_report(self, report: Report) -> None:
        """Stores the report. Other processes see the whole report, or none."""
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
    place = _place(settings)
    id = random_base62(ID_CHARACTERS)
    folder = place.folder_of(id)
    folder.mkdir(mode=0o700)
    pending = PendingRestore(folder, id)
    pending.hold()
    return pending


def find(settings: Settings, id: str) -> PendingRestore | None:
    """Returns the uploaded backup with this id; None if there is none."""
    if not _IS_ID(id):
        return None
    pending = PendingRestore(_place(settings).folder_of(id), id)
    if pending.exists():
        return pending
    return None


def discard_idle(settings: Settings) -> list[PendingRestore]:
    """Removes each uploaded backup that no process receives or examines.

    Returns the other uploaded backups.
    """
    place = _place(settings)
    held = []
    for folder in place.parent.glob(f"{place.prefix}*"):
        pending = PendingRestore(folder, folder.name.removeprefix(place.prefix))
        if pending.is_held():
            held.append(pending)
        else:
            pending.discard()
    return held


class _Place(NamedTuple):
    """Where the folders of pending restores are: the parent, and how their names begin."""

    parent: Path
    prefix: str

    def folder_of(self, id: str) -> Path:
        return self.parent / f"{self.prefix}{id}"


def _place(settings: Settings) -> _Place:
    """Returns where the pending restores of this database are.

    They are beside a SQLite database. For PostgreSQL they are in the folder of temporary
    files.
    """
    url = settings.database_url
    path = sqlite_path(url)
    if path:
        return _Place(path.parent, f".{path.name}.restore-")
    parts = urlsplit(url)
    # Without the password, which a digest would help to guess.
    database = f"{parts.hostname} {parts.port} {parts.path}"
    digest = hashlib.sha256(database.encode()).hexdigest()[:16]
    return _Place(Path(tempfile.gettempdir()), f".blocktill-{digest}.restore-")
