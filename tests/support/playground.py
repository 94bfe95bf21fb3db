"""The shipped sandbox as a process: what `make run` starts, on ports of its own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.builders import among_strangers, until
from tests.support.paths import GONE, PROJECT
from tests.support.ports import free_port


def children_of(pid: int) -> list[int]:
    """The processes that this process started and theirs, from /proc."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            for child in map(int, task.read_text().split()):
                found += [child, *children_of(child)]
    return found


def is_alive(pid: int) -> bool:
    """True if the process runs (a zombie does not)."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False


def press(chain: str, button: str, **fields: Any) -> Any:
    """A button of the sandbox's page, which answers in JSON."""
    url = f"{chain}/sandbox/{button}"
    headers = {"Accept": "application/json"}
    response = requests.post(url, data=fields, headers=headers, timeout=60)
    assert response.ok, response.text
    return response.json()


def scene_of(playground: "Playground") -> dict[str, Any]:
    """The scene that was begun last, as the workbench shows it."""
    return requests.get(f"{playground.chain}/sandbox/state", timeout=60).json()["scene"]


@dataclass
class Playground:
    """A running sandbox: its addresses, the key that it printed, and the file of its talk."""

    process: subprocess.Popen[str]
    introduction: str
    talk: Path
    api: str
    service: str
    chain: str
    environ: dict[str, str]
    began_s: float  # when it was started, by the clock that never jumps

    @property
    def key(self) -> str:
        return re.search(r"sk_test_\w+", self.introduction)[0]

    @property
    def link(self) -> str:
        return re.search(r"http\S+/link/lnk_\w+", self.introduction)[0]

    @property
    def pay_url(self) -> str:
        return re.search(r"http\S+/pay/inv_\w+", self.introduction)[0]

    def get(self, path: str) -> Any:
        return requests.get(self.api + path, headers=self._headers(), timeout=60).json()

    def post(self, path: str, body: Any) -> Any:
        return requests.post(
            self.api + path, json=body, headers=self._headers(), timeout=60
        ).json()

    def press(self, button: str, **fields: Any) -> Any:
        return press(self.chain, button, **fields)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def pay(
        self, invoice: dict[str, Any], sats: int | None = None, button: str = "pay"
    ) -> str:
        amount = invoice["amount_sats"] if sats is None else sats
        return self.press(button, address=invoice["deposit_address"], amount=amount)[
            "txid"
        ]

    def wait_for_status(self, invoice: dict[str, Any], status: str) -> dict[str, Any]:
        """The invoice once it has the status; the page is polled, well within what visitors may."""
        reached = lambda: self.page_status(invoice)["status"] == status  # noqa: E731
        until(reached, f"{invoice['id']} to become {status}", every_s=0.2)
        return self.get(f"/invoices/{invoice['id']}")

    def page_status(self, invoice: dict[str, Any]) -> dict[str, Any]:
        return requests.get(f"{invoice['pay_url']}/status", timeout=60).json()

    def blocktill(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command line beside the running service."""
        return subprocess.run(
            [sys.executable, "-m", "btcpay", *words],
            cwd=PROJECT,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def stop(self, number: int = signal.SIGINT) -> int:
        """Sends the signal to the sandbox alone and returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)


def start_playground(
    folder: Path,
    service_port: int = 0,
    chain_port: int = 0,
    cwd: Path | None = None,
    program: Sequence[str] = (sys.executable, "-P", "-m", "btcpay"),
) -> Playground:
    """Runs `blocktill sandbox` until it has introduced itself."""
    if "sandbox_command" in GONE:
        pytest.skip("the part was deleted")
    service_port = service_port or free_port()
    chain_port = chain_port or free_port()
    service = f"http://127.0.0.1:{service_port}"
    chain = f"http://127.0.0.1:{chain_port}"
    began_s = time.monotonic()
    environ = {
        name: value for name, value in os.environ.items() if "BLOCKTILL" not in name
    } | {
        "BLOCKTILL_DATABASE_URL": f"sqlite:///{folder}/blocktill.db",
        "BLOCKTILL_BASE_URL": service,
        "BLOCKTILL_EXPLORERS": chain,
        "BLOCKTILL_PRICE_SOURCES": f"{chain}/price#/usd",
        "BLOCKTILL_CURRENCY_SOURCES": f"{chain}/price#/{{currency}}",
    }
    words = ["sandbox", "--port", str(chain_port), "--state", str(folder / "sandbox")]
    talk = folder / "talk"
    introduction = ""
    with talk.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [*program, *words],
            cwd=cwd or among_strangers(folder),
            env=environ,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    while "start over" not in introduction:
        line = process.stdout.readline()
        assert line, f"the sandbox did not start: {talk.read_text()}"
        introduction += line
    api = f"{service}/api/v1"
    return Playground(
        process, introduction, talk, api, service, chain, environ, began_s
    )
