"""docs/operators/going-live.md: its commands run as written, with regtest instead of testnet."""

import getpass
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.builders import Clock, TickerServer, clean_environ, new_xpub, until
from tests.support.fake_esplora import serving_sandbox
from tests.support.going_live import RUN, commands
from tests.support.playground import press
from tests.support.ports import free_port

# This stands for systemd: the service as a process that leads a group of its own.
SYSTEMCTL = """#!/bin/bash
set -eu
[[ " $* " == *" blocktill.service "* ]] || exit 0
case $1 in
  enable|start)
    ! kill -0 "$(cat {folder}/serve.pid 2> /dev/null)" 2> /dev/null || exit 0
    cd {lib}
    setsid {blocktill} --env-file {env} run < /dev/null > {folder}/serve.log 2>&1 &
    echo $! > {folder}/serve.pid
    for _ in $(seq 900); do curl -so /dev/null {url} && exit 0; sleep 0.1; done
    exit 1;;
  restart)
    "$0" stop blocktill.service && exec "$0" start blocktill.service;;
  stop)
    kill -TERM "$(cat {folder}/serve.pid)"
    while kill -0 "$(cat {folder}/serve.pid)" 2> /dev/null; do sleep 0.1; done;;
esac
"""


@dataclass
class Machine:
    """A bare machine in a folder: every absolute path of the document lies within it."""

    folder: Path
    url: str
    chain: str
    ticker: str
    metrics: int
    outputs: dict[str, str] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        tools = self.folder / "tools"
        blocktill = Path(sys.executable).parent / "blocktill"
        for name in ("tools", "systemd"):
            (self.folder / name).mkdir()
        values = {"lib": self.folder / "lib", "env": self.folder / "blocktill.env"}
        values |= {"folder": self.folder, "blocktill": blocktill, "url": self.url}
        (tools / "systemctl").write_text(SYSTEMCTL.format(**values))
        (tools / "journalctl").write_text(f"#!/bin/sh\ncat {self.folder}/serve.log\n")
        for tool in tools.iterdir():
            tool.chmod(0o755)
        self.places = {
            "bin/blocktill setup ": f"bin/blocktill setup {' '.join(self._own_places())} ",
            "/opt/blocktill/bin/blocktill": str(blocktill),
            "/var/lib/blocktill": f"{self.folder}/lib",
            "/var/backups/blocktill": f"{self.folder}/backups",
            "/etc/blocktill.env": f"{self.folder}/blocktill.env",
            "https://pay.example.com": self.url,
            "127.0.0.1:9464": f"127.0.0.1:{self.metrics}",
            "testnet4": "regtest",
            # There is no user for the service here: all runs as whoever tests.
            "runuser -u blocktill -- ": "",
        }
        self.found["vpub5Y..."] = new_xpub()
        (self.folder / "blocktill.env").write_text(
            f"BLOCKTILL_EXPLORERS={self.chain}\nBLOCKTILL_PRICE_SOURCES={self.ticker}#/usd\n"
            f"BLOCKTILL_METRICS_BIND=127.0.0.1:{self.metrics}\n"
        )

    def _own_places(self):
        """The options that a machine without such a folder would not need."""
        words = ["--env-file", "/etc/blocktill.env", "--user", getpass.getuser()]
        words += ["--database-url", "sqlite:////var/lib/blocktill/blocktill.db"]
        return [
            *words,
            "--units-folder",
            f"{self.folder}/systemd",
            "--backups /var/backups/blocktill",
        ]

    def _here(self, text):
        for written, here in (self.places | self.found).items():
            text = text.replace(written, here)
        return text

    def run(self, name):
        """Runs a block; each of its commands must succeed."""
        shell = commands("shell")[0] if name != "setup" else ""
        script = "\n".join(["set -eu -o pipefail", shell, *commands(name)])
        ended = subprocess.run(
            ["bash", "-c", self._here(script)],
            input="y\n" * 9,
            env=clean_environ(PATH=f"{self.folder}/tools:{os.environ['PATH']}"),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert ended.returncode == 0, f"{name}: {ended.stdout}"
        self.outputs[name] = ended.stdout
        self._remember(ended.stdout)

    def _remember(self, output):
        """The values that the document shortens to three points: the first of each."""
        patterns = {"inv_...": r"inv_\w{24}", "key_...": r"key_\w{24}"}
        patterns["sk_test_..."] = r"sk_test_\w{40,}"
        for written, pattern in patterns.items():
            if found := re.search(pattern, output):
                self.found.setdefault(written, found[0])

    def pay(self):
        """The customer pays the invoice, and a block is found."""
        text = self.outputs["invoice"]
        address = re.search(r'"deposit_address":"(\w+)"', text)[1]
        amount = re.search(r'"amount_sats":([0-9]+)', text)[1]
        (
            press(self.chain, "pay", address=address, amount=amount),
            press(self.chain, "mine"),
        )

    def stop(self):
        if (self.folder / "serve.pid").exists():
            pid = int((self.folder / "serve.pid").read_text())
            os.killpg(pid, signal.SIGTERM)
            until(lambda: not Path(f"/proc/{pid}/stat").exists(), "the service to end")


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine")
    with (
        TickerServer() as ticker,
        serving_sandbox(folder / "chain", Clock()) as (_, chain),
    ):
        url = f"http://127.0.0.1:{free_port()}"
        machine = Machine(folder, url, chain, ticker.url, free_port())
        try:
            for name in RUN:
                machine.run(name)
                if name == "invoice":
                    machine.pay()
            yield machine
        finally:
            machine.stop()


def test_the_commands_run_as_written_and_what_the_document_promises_comes(machine):
    invoice = machine.found["inv_..."]
    assert "bcrt1q" in machine.outputs["merchant"]
    assert re.search(rf"{invoice}.*\bpaid\b", machine.outputs["paid"], re.S)
    assert "A first try" in (machine.folder / "labels.jsonl").read_text()
    assert (
        (machine.folder / "payments.csv")
        .read_text()
        .startswith("day,received_at,recorded_at")
    )
    assert (
        sum("sk_test_" in machine.outputs[name] for name in ("rotate", "leaked")) == 2
    )
