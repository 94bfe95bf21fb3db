"""The systemd units of `blocktill setup`, from the files that a package has too."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import click

from btcpay.cli.setup.machine import STATE
from btcpay.values.errors import CommandError

BACKUPS = Path("/var/backups/blocktill")
KINDS = (
    "run",
    "cron",
)  # the whole shop in one process, or a service and a check every minute
NONE = "none"
OF_CRON = ("blocktill-check.service", "blocktill-check.timer")
STARTED = ("blocktill.service", "blocktill-check.timer", "blocktill-backup.timer")
SYSTEMD = Path(
    "/run/systemd/system"
)  # sd_booted(3): there when systemd runs the machine
SYSTEMCTL = "systemctl"
OWN = Path("/etc/systemd/system")
PACKAGED = Path("/usr/lib/systemd/system")
_FILES = resources.files("btcpay.cli.setup") / "files"
_ONE_WORD = re.compile(r"[^\s%$\"'\\;]+")


def chosen_kind(kind: str | None, is_started: bool | None, command: str) -> str:
    """One of KINDS, by default where root has a systemd, or NONE.

    Raises CommandError for units that nothing here would start, and UsageError for a start of none.
    """
    usual = KINDS[0] if os.geteuid() == 0 and SYSTEMD.is_dir() else NONE
    chosen = kind or usual
    is_systemd_needed = chosen != NONE or is_started
    if is_systemd_needed and shutil.which(SYSTEMCTL) is None:
        raise CommandError(
            "this machine has no systemd (no systemctl): say --units none --no-start, and start the"
            f" shop by {command} run"
        )
    if chosen == NONE and is_started:
        raise click.UsageError(
            "--start needs units: say --units run, or start the shop yourself"
        )
    return chosen


def template(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def units(
    program: Path,
    env_file: Path,
    user: str,
    state: Path | None,
    backups: Path = BACKUPS,
    kind: str = KINDS[0],
) -> Mapping[str, str]:
    """Each unit's text by its name; `kind`: of KINDS. `state`: the folder of a SQLite database.

    Raises CommandError for a path that a unit cannot hold.
    """
    for text in (str(program), str(env_file), user, str(state or ""), str(backups)):
        if text and not _ONE_WORD.fullmatch(text):
            raise CommandError(
                f"a unit cannot name {text!r}: choose a path without blanks or special characters"
            )
    elsewhere = state if state and not state.is_relative_to(STATE) else None
    changes = {
        "/opt/blocktill/bin/blocktill": str(program),
        "/etc/blocktill.env": str(env_file),
        str(BACKUPS): str(backups),
        "User=blocktill\n": f"User={user}\n",
        "Group=blocktill\n": "",  # the user's own
        "\nUMask=": f"\nReadWritePaths={elsewhere}\nUMask="
        if elsewhere
        else "\nUMask=",
        " run\n": " run\n" if kind == "run" else " serve\n",
    }
    names = {
        file.name
        for file in _FILES.iterdir()
        if file.name.endswith((".service", ".timer"))
    }
    found = {
        name: template(name)
        for name in names.difference(() if kind == "cron" else OF_CRON)
    }
    for old, new in changes.items():
        found = {name: text.replace(old, new) for name, text in found.items()}
    return found


def install(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Has systemd read these units, and no others of ours; the names of those written."""
    for name in OF_CRON:
        if name not in texts and (folder / name).exists():
            systemctl("disable", "--now", name)
            (folder / name).unlink()
    written = write(folder, texts, PACKAGED if folder == OWN else None)
    systemctl("daemon-reload")
    return written


def write(
    folder: Path, texts: Mapping[str, str], packaged: Path | None = None
) -> list[str]:
    """Writes the units that differ from these texts; the names of those written.

    What is not in `folder` systemd reads from `packaged`, where a package has put it.
    """
    changed = []
    for name, text in sorted(texts.items()):
        place = there = folder / name
        if packaged and not place.exists():
            there = packaged / name
        if not there.exists() or there.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")
            changed.append(name)
    return changed


def start(texts: Mapping[str, str]) -> None:
    """Starts the units, now and at each boot."""
    started = [name for name in STARTED if name in texts]
    systemctl("enable", "--now", *started)
    systemctl("restart", started[0])  # it reads its settings once


def systemctl(*words: str) -> None:
    """Raises CommandError with its error output."""
    ended = subprocess.run(
        [SYSTEMCTL, *words], capture_output=True, encoding="utf-8", errors="replace"
    )
    if ended.returncode:
        raise CommandError(f"systemctl {' '.join(words)}: {ended.stderr.strip()}")
