"""The disk: who may read the database's files, and what is left for it to grow."""

from collections.abc import Iterator
from pathlib import Path

from btcpay.doctor.finding import GREEN, RED, YELLOW, Finding, Patient
from storage.database import sqlite_path

# A restore needs room for two more copies; below the second SQLite soon cannot write its log.
LITTLE_BYTES, TOO_LITTLE_BYTES = 1_000_000_000, 100_000_000
NOT_THE_OWNER = 0o077
LISTED_OR_WRITTEN = 0o066  # a folder that others may only pass through shows them nothing


def modes(patient: Patient) -> Iterator[Finding]:
    """Customers' addresses and keys' hashes are for the service's user alone."""
    path = sqlite_path(patient.settings.database_url)
    if path is None or not path.exists():
        return
    files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]
    open_to_others = [f"{file}" for file in files if _mode(file) & NOT_THE_OWNER]
    folder = path.parent.absolute()
    if _mode(folder) & LISTED_OR_WRITTEN:
        open_to_others.append(f"the folder {folder}")
    if open_to_others:
        yield Finding(
            "file modes",
            RED,
            f"others may use {', '.join(open_to_others)}",
            f"chmod 700 '{folder}' && chmod 600 '{path}'*",
        )
    else:
        yield Finding("file modes", GREEN, "the database is its owner's alone")


def _mode(path: Path) -> int:
    return path.stat().st_mode if path.exists() else 0


def free_space(patient: Patient) -> Iterator[Finding]:
    """A full disk stops every sale."""
    path = sqlite_path(patient.settings.database_url)
    if path is None or not path.parent.exists():
        return
    free = patient.free_bytes(path.parent)
    colour = RED if free < TOO_LITTLE_BYTES else YELLOW if free < LITTLE_BYTES else GREEN
    remedy = "" if colour == GREEN else f"make room on the disk of {path.parent.absolute()}"
    yield Finding("disk", colour, f"{free // 1_000_000} MB are free", remedy)
