"""The disk: the modes of the database's files, and the room that is left."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from btcpay.health.doctor.shop import Shop
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from storage.database import sqlite_path

# Below the first a restore may lack room for two more copies. Below the second SQLite soon cannot
# write its log.
LITTLE_BYTES, TOO_LITTLE_BYTES = 1_000_000_000, 100_000_000
NOT_THE_OWNER = 0o077
OWN_FOLDER = "move the database into a folder of its own, such as /var/lib/btcpay (mode 700)"
LISTED_OR_WRITTEN = 0o066  # a folder that others may only pass through shows them nothing


def modes(shop: Shop) -> Iterator[Finding]:
    """Only the service's user may read customers' addresses and the hashes of keys."""
    path = sqlite_path(shop.settings.database_url)
    if path is None or not path.is_file():
        return
    files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]
    open_files = [file for file in files if _mode(file) & NOT_THE_OWNER]
    folder = path.parent.absolute()
    remedies, open_to_all = [], [f"{file}" for file in open_files]
    if _mode(folder) & LISTED_OR_WRITTEN:
        open_to_all.append(f"the folder {folder}")
        remedies.append(f"chmod 700 {_quoted(folder)}" if is_its_own(path) else OWN_FOLDER)
    if open_files:
        remedies.append(f"chmod 600 {' '.join(map(_quoted, open_files))}")
    if remedies:
        yield Finding(
            "file modes", RED, f"other users may use {', '.join(open_to_all)}", "; ".join(remedies)
        )
    else:
        yield Finding("file modes", GREEN, "only its owner may use the database")


def is_its_own(path: Path) -> bool:
    """True if the folder may be closed to others: it is ours, and holds the database alone.

    False for the root and for folders right below it.
    """
    folder = path.parent.absolute()
    found = folder.stat()
    return (
        len(folder.parts) > 2
        and found.st_uid == os.geteuid()
        and not found.st_mode & stat.S_ISVTX
        and all(file.name.startswith((path.name, f".{path.name}.")) for file in folder.iterdir())
    )


def _quoted(path: Path) -> str:
    return f"'{path}'"


def _mode(path: Path) -> int:
    return path.stat().st_mode if path.exists() else 0


def free_space(shop: Shop) -> Iterator[Finding]:
    """A full disk stops every sale."""
    path = sqlite_path(shop.settings.database_url)
    if path is None or not path.parent.exists():
        return
    free = shop.free_bytes(path.parent)
    colour = RED if free < TOO_LITTLE_BYTES else YELLOW if free < LITTLE_BYTES else GREEN
    remedy = "" if colour == GREEN else f"make room on the disk of {path.parent.absolute()}"
    yield Finding("disk", colour, f"{free // 1_000_000} MB are free", remedy)
