"""Bare Debians in folders, and programs that run in them; root makes them, with mmdebstrap.

Whatever is mounted is seen by one program and its children alone, and gone with them.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.support.builders import Clock, TickerServer, answers, until
from tests.support.fake_esplora import serving_sandbox
from tests.support.playground import press
from tests.support.ports import free_port
from tests.support.programs import done

PLACE = "/var/tmp"  # a disk: these folders are large
PACKAGES = "python3,python-is-python3,python3-venv,python3-pip,ca-certificates,make"
# also what this machine alone trusts
TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MADE_WITHIN_S = 900
# The root, its volume for /var/lib/blocktill or nothing, the user, and the words. With a volume
# nothing but that and /tmp can be written, as in a container that is read-only.
ENTER = """
root=$1 volume=$2 user=$3; shift 3
if [ "$volume" ]; then
  mount --bind "$root" "$root"
  mount -o remount,bind,ro "$root"
  mount --bind "$volume" "$root/var/lib/blocktill"
  mount -t tmpfs -o size=64m tmpfs "$root/tmp"
fi
mount --bind /dev "$root/dev"
exec chroot --userspec="$user" "$root" "$@"
"""


def base(suite: str, folder: Path) -> Path:
    """An archive of this release of Debian with Python."""
    assert os.geteuid() == 0, "only root can make a system in a folder"
    made = folder / f"{suite}.tar"
    words = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--include={PACKAGES}",
        suite,
        made,
    ]
    done(words, timeout=MADE_WITHIN_S)
    return made


@dataclass
class System:
    """A system in a folder. With a `volume` all else of it can only be read."""

    root: Path
    environ: dict[str, str] = field(
        default_factory=lambda: {"PATH": PATH, "LC_ALL": "C.UTF-8"}
    )
    user: str = "0:0"
    volume: Path | str = ""

    def _words(self, words: tuple[Any, ...]) -> dict[str, Any]:
        inside = ["sh", "-ec", ENTER, "sh", self.root, self.volume, self.user, *words]
        return {
            "args": ["unshare", "--mount", "--propagation", "private", *inside],
            "env": {"DEBIAN_FRONTEND": "noninteractive"} | self.environ,
        }

    def run(self, *words: Any, status: int = 0) -> str:
        """All that a command says, which must end so."""
        ended = subprocess.run(
            **self._words(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MADE_WITHIN_S,
        )
        assert ended.returncode == status, ended.stdout
        return ended.stdout

    @contextmanager
    def running(self, url: str, *words: Any) -> Iterator[Path]:
        """The log of a service that answers there; it ends well when it is told to."""
        log = self.root.with_name(f"{self.root.name}.log")
        with log.open("wb") as stream:
            process = subprocess.Popen(
                **self._words(words), stdout=stream, stderr=stream
            )
        with process:
            try:
                until(
                    lambda: answers(f"{url}/healthz") or process.poll() is not None,
                    str(log),
                )
                assert process.poll() is None, log.read_text()
                yield log
            finally:
                process.terminate()
        assert process.returncode == 0, log.read_text()


def unpacked(archive: Path, root: Path) -> System:
    """The system of an archive; it trusts what this machine trusts."""
    root.mkdir()
    done(
        ["tar", "--extract", "--file", archive, "--directory", root],
        timeout=MADE_WITHIN_S,
    )
    shutil.copy(TRUSTED, root / TRUSTED.relative_to("/"))
    return System(root)


@dataclass
class Outside:
    """The surroundings of a shop in such a system: its own address, a chain, and a price."""

    url: str
    chain: str
    settings: dict[str, str]
    key: str = ""

    def order(self, said: str) -> dict[str, Any]:
        """An invoice, made with the key that a command has `said`."""
        self.key = re.search(r"sk_test_\w+", said)[0]
        return self._ask("POST", "/invoices", json={"amount_usd": 25})

    def pay(self, invoice: dict[str, Any]) -> None:
        """Its customer pays, and a block is found."""
        place = {
            "address": invoice["deposit_address"],
            "amount": invoice["amount_sats"],
        }
        press(self.chain, "pay", **place), press(self.chain, "mine")

    def status(self, invoice: dict[str, Any]) -> str:
        return str(self._ask("GET", f"/invoices/{invoice['id']}")["status"])

    def _ask(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        url = f"{self.url}/api/v1{path}"
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = requests.request(method, url, headers=headers, timeout=60, **more)
        assert answer.ok, answer.text
        return dict(answer.json())


@contextmanager
def outside(folder: Path) -> Iterator[Outside]:
    """On this machine, whose network a system in a folder shares."""
    with (
        TickerServer() as ticker,
        serving_sandbox(folder / "chain", Clock()) as (_, chain),
    ):
        url = f"http://127.0.0.1:{free_port()}"
        settings = {
            "BLOCKTILL_EXPLORERS": chain,
            "BLOCKTILL_PRICE_SOURCES": f"{ticker.url}#/usd",
            "BLOCKTILL_METRICS_BIND": f"127.0.0.1:{free_port()}",
        }
        yield Outside(url, chain, settings)
