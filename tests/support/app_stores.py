"""The shop as app stores' platforms start it: their variables, their user, their folder of data.

Not in a container: the program of this environment runs in place of the image's.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support import startos, umbrel
from tests.support.bitcoin_node import why_not_installed
from tests.support.builders import (
    TickerServer,
    among_strangers,
    answers,
    clean_environ,
    until,
)
from tests.support.fake_peer import FakePeer
from tests.support.payer import Page
from tests.support.ports import free_port
from tests.support.project import instructions

NETWORK = "regtest"
PASSWORD = umbrel.PASSWORD
COMMAND = dict(instructions())["CMD"]


@dataclass
class Platform:
    """How a platform runs the shop: `is_open` says which paths it lets a stranger reach."""

    root: str
    start: str
    user: str
    folder: str
    environment: Callable[[Path, str], dict[str, str]]
    is_open: Callable[[str], bool]


def of_umbrel() -> Platform:
    """umbrelOS, whose proxy asks strangers to log in."""
    service = umbrel.services()[umbrel.SERVICE]

    def environment(data: Path, node: str) -> dict[str, str]:
        address, _, port = node.rpartition(":")
        return umbrel.environment(
            data,
            APP_BITCOIN_NETWORK=NETWORK,
            APP_BITCOIN_NODE_IP=address,
            APP_BITCOIN_P2P_PORT=port,
        )

    return Platform(
        root=f"http://{umbrel.DOMAIN}:8378",
        start=umbrel.read_yaml("umbrel-app.yml")["path"],
        user=service["user"],
        folder=service["volumes"][0].rpartition(":")[2],
        environment=environment,
        is_open=umbrel.is_open,
    )


def of_startos() -> Platform:
    """StartOS, which lets everybody reach every page; skips without its kit."""
    if reason := why_not_installed(startos.KIT):
        pytest.skip(reason)
    root = "http://lively-otter.local"

    def environment(data: Path, node: str) -> dict[str, str]:
        environ = startos.environment(root, umbrel.PASSWORD, node)
        return {
            name: text.replace("mainnet", NETWORK) for name, text in environ.items()
        }

    user, folder = startos.ask("[of.user, of.folder]")
    return Platform(root, "/merchant", user, folder, environment, lambda path: True)


class Visitor:
    """A browser at the shop's address, logged in to the platform or not."""

    def __init__(
        self, platform: Platform, url: str, is_logged_in: bool = False
    ) -> None:
        self.platform = platform
        self.url = url
        self.is_logged_in = is_logged_in
        self.session = requests.Session()
        self.session.headers["X-Forwarded-For"] = "192.168.1.20"

    def ask(self, method: str, path: str, **more: Any) -> requests.Response | None:
        """None if the platform's proxy wants a login first."""
        if not (self.is_logged_in or self.platform.is_open(path)):
            return None
        headers = more.pop("headers", {})
        headers["Host"] = self.platform.root.removeprefix("http://")
        if method == "POST":
            headers["Origin"] = self.platform.root
        how = {"headers": headers, "allow_redirects": False, "timeout": 60}
        return self.session.request(method, self.url + path, **how, **more)

    def page(self, path: str) -> Page:
        answer = self.ask("GET", path)
        assert answer is not None and answer.status_code == 200, answer.text
        return Page(answer.text)


def _words(user: str) -> list[str]:
    """As the user; the clone of the project may lie where only root reads."""
    uid, gid = user.split(":")
    may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    command = re.findall(r'"(\w+)"', COMMAND)
    return [*become, *may_read, sys.executable, "-P", "-m", "btcpay", *command]


@contextmanager
def started(
    platform: Platform, log: Path, data: Path, node: FakePeer, ticker: TickerServer
) -> Iterator[str]:
    """The URL of the shop. Its prices are the test's, and its port is any free one."""
    url = f"http://127.0.0.1:{free_port()}"
    written = platform.environment(data, node.place)
    environ = {
        name: text.replace(platform.folder, str(data)) for name, text in written.items()
    } | {
        "BLOCKTILL_BIND": url.removeprefix("http://"),
        "BLOCKTILL_METRICS_BIND": "",
        "BLOCKTILL_PRICE_SOURCES": f"{ticker.url}#/usd",
        "BLOCKTILL_CURRENCY_SOURCES": f"{ticker.url}#/{{currency}}",
    }
    with log.open("wb") as stream:
        process = subprocess.Popen(
            _words(platform.user),
            env=clean_environ(**environ),
            cwd=among_strangers(data),
            stdout=stream,
            stderr=stream,
        )
    with process:
        try:
            until(
                lambda: answers(f"{url}/healthz") or process.poll() is not None,
                url,
                every_s=0.2,
            )
            assert process.poll() is None
            yield url
        finally:
            print(log.read_text())
            with suppress(ProcessLookupError):
                process.terminate()
    assert process.returncode == 0
