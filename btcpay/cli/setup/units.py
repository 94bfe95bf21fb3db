"""Makes the systemd units of `blocktill setup`, from the files that packages also contain."""

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
# `run`: the whole shop in one process. `cron`: the service, and a timer for the check.
KINDS = ("run", "cron")
NONE = "none"
CRON_UNITS = ("blocktill-check.service", "blocktill-check.timer")
STARTING_UNITS = (
    "blocktill.service",
    "blocktill-check.timer",
    "blocktill-backup.timer",
)
# This folder exists if systemd runs the machine (sd_booted(3)).
SYSTEMD = Path("/run/systemd/system")
SYSTEMCTL = "systemctl"
OWN = Path("/etc/systemd/system")
PACKAGED = Path("/usr/lib/systemd/system")
_FILES = resources.files("btcpay.cli.setup") / "files"
_PLAIN_WORD = re.compile(r"[^\s%$\"'\\;]+")


def choose_kind(kind: str | None, is_started: bool | None, command: str) -> str:
    """Returns the kind of units: one of KINDS, or NONE.

    `kind` and `is_started` are the options --units and --start, None if not given. The
    default is `run` for root on a machine that runs systemd, else NONE. Raises
    CommandError if units or a start are wanted but there is no systemd. Raises
    UsageError if a start is wanted without units.
    """
    if not kind:
        kind = NONE
        if os.geteuid() == 0 and SYSTEMD.is_dir():
            kind = KINDS[0]
    is_systemd_needed = kind != NONE or is_started
    if is_systemd_needed and shutil.which(SYSTEMCTL) is None:
        raise CommandError(
            "this machine has no systemd (no systemctl): say --units none --no-start, and start the"
            f" shop by {command} run"
        )
    if kind == NONE and is_started:
        raise click.UsageError(
            "--start needs units: say --units run, or start the shop yourself"
        )
    return kind


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
    """Returns the text of each unit, by its file name.

    `kind` is one of KINDS. `state` is the folder of an SQLite database, or None. Raises
    CommandError for a path with spaces or special characters.
    """
    _require_plain_words(program, env_file, user, state or "", backups)
    # Texts of the files, which are those of the packages, and what replaces them.
    changes = {
        "/opt/blocktill/bin/blocktill": str(program),
        "/etc/blocktill.env": str(env_file),
        str(BACKUPS): str(backups),
        "User=blocktill\n": f"User={user}\n",
        "Group=blocktill\n": "",  # systemd then uses the user's primary group
    }
    if state and not state.is_relative_to(STATE):
        changes["\nUMask="] = f"\nReadWritePaths={state}\nUMask="
    if kind != "run":
        changes[" run\n"] = " serve\n"
    texts = {}
    for name in _names(kind):
        text = template(name)
        for old, new in changes.items():
            text = text.replace(old, new)
        texts[name] = text
    return texts


def _require_plain_words(*values: Path | str) -> None:
    """Raises CommandError for a value with blanks or special characters. "" is accepted."""
    for value in values:
        text = str(value)
        if text and not _PLAIN_WORD.fullmatch(text):
            raise CommandError(
                f"a unit cannot name {text!r}: choose a path without blanks or special characters"
            )


def _names(kind: str) -> list[str]:
    """Returns the file names of the units of this kind."""
    names = [file.name for file in _FILES.iterdir()]
    names = [name for name in names if name.endswith((".service", ".timer"))]
    if kind == "cron":
        return names
    return [name for name in names if name not in CRON_UNITS]


def install(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Writes systemd units to `folder`, and makes systemd load them.

    `texts` has the text of each unit by its file name. Returns the names of the units
    that were missing or had another text before. Raises CommandError if systemctl fails.

    Disables and deletes the units of CRON_UNITS in `folder` that are not in `texts`.
    """
    for name in CRON_UNITS:
        if name not in texts and (folder / name).exists():
            systemctl("disable", "--now", name)
            (folder / name).unlink()
    packaged = None
    if folder == OWN:
        packaged = PACKAGED
    names = write(folder, texts, packaged)
    systemctl("daemon-reload")
    return names


def write(
    folder: Path,
    texts: Mapping[str, str],
    packaged: Path | None = None,
) -> list[str]:
    """Writes the units that are missing or have another text now. Returns their names.

    A unit that is missing in `folder` is compared with the one in the folder `packaged`
    (None if there is no such folder), since systemd uses that one.
    """
    written_names = []
    for name, text in sorted(texts.items()):
        target = folder / name
        present = target
        if packaged and not target.exists():
            present = packaged / name
        if not present.exists() or present.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
            written_names.append(name)
    return written_names


def start(texts: Mapping[str, str]) -> None:
    """Starts the units now and at each boot, and restarts the service.

    Raises CommandError if systemctl fails.
    """
    names = [name for name in STARTING_UNITS if name in texts]
    systemctl("enable", "--now", *names)
    systemctl("restart", names[0])  # it reads its settings only when it starts


def systemctl(*words: str) -> None:
    """Runs systemctl with these arguments.

    If systemctl fails, raises CommandError with the error output of systemctl.
    """
    result = subprocess.run(
        [SYSTEMCTL, *words],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if result.returncode:
        raise CommandError(f"systemctl {' '.join(words)}: {result.stderr.strip()}")
