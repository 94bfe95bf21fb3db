"""The systemd units: files beside this module, fitted to this program's place and user."""

import re
import subprocess
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from btcpay.setup.places import STATE
from btcpay.values.errors import CommandError

BACKUPS = Path("/var/backups/btcpay")
CHECK, WATCH = "btcpay-check.service", " check --watch 15\n"
STARTED = ("btcpay.service", "btcpay-check.timer", "btcpay-backup.timer")
SYSTEMD = Path("/run/systemd/system")  # sd_booted(3): there when systemd runs the machine
# Example configurations of TLS proxies.
PROXIES = {"nginx": "nginx.conf", "caddy": "Caddyfile"}
_FILES = resources.files("btcpay.setup") / "files"
_ONE_WORD = re.compile(r"[^\s%$\"'\\;]+")


def template(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def units(
    program: list[str],
    env_file: Path,
    user: str,
    state: Path | None,
    backups: Path = BACKUPS,
    watches: bool = False,
) -> Mapping[str, str]:
    """Each unit's text by its name. `state`: the folder of a SQLite database.

    `watches`: the check keeps running, to listen to peers; its timer restarts one that has ended.
    Raises CommandError for a path that a unit cannot hold.
    """
    words = " ".join(program)
    for text in (*program, str(env_file), user, str(state or ""), str(backups)):
        if text and not _ONE_WORD.fullmatch(text):
            raise CommandError(
                f"a unit cannot name {text!r}: choose a path without blanks or special characters"
            )
    elsewhere = state if state and not state.is_relative_to(STATE) else None
    found = {}
    for file in _FILES.iterdir():
        if not file.name.endswith((".service", ".timer")):
            continue
        text = file.read_text(encoding="utf-8")
        for old, new in (
            ("/opt/btcpay/bin/btcpay ", f"{words} "),
            ("/etc/btcpay.env", str(env_file)),
            (str(BACKUPS), str(backups)),
            ("User=btcpay\n", f"User={user}\n"),
            ("Group=btcpay\n", ""),  # the user's own
            ("\nUMask=", f"\nReadWritePaths={elsewhere}\nUMask=" if elsewhere else "\nUMask="),
        ):
            text = text.replace(old, new)
        if watches and file.name == CHECK:
            text = text.replace("Type=oneshot", "Type=exec").replace(" check\n", WATCH)
        found[file.name] = text
    return found


def write(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Writes the units that differ from these texts; the names of those written."""
    changed = []
    for name, text in sorted(texts.items()):
        place = folder / name
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            beside = place.with_name(f".{name}.new")
            beside.write_text(text, encoding="utf-8")
            beside.replace(place)
            changed.append(name)
    return changed


def systemctl(*words: str) -> None:
    """Raises CommandError with its error output."""
    ended = subprocess.run(["systemctl", *words], capture_output=True, text=True)
    if ended.returncode:
        raise CommandError(f"systemctl {' '.join(words)}: {ended.stderr.strip()}")
