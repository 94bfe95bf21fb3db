"""What the kernel tells of a process: proc(5)."""

import contextlib
import os
from pathlib import Path


def command_of(pid: int) -> list[str]:
    """The words that the process was started with; none if it has ended."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return []
    return [os.fsdecode(word) for word in line.split(b"\0")[:-1]]


def name_of(pid: int) -> str:
    """The name that `ps` and `top` show; "" if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def open_files(pid: int) -> list[str]:
    """The names of the files that the process holds open, but for those that it just closed."""
    names = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(file))
    return names
