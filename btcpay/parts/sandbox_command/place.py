"""The place of a sandbox: its folder, its addresses, and the settings of its programs."""

import shlex
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from btcpay.settings.secrets import shown
from btcpay.settings.settings import Settings, read
from btcpay.values.errors import CommandError


@dataclass(frozen=True)
class Place:
    """`port` is the chain's on 127.0.0.1, `own` the variables that `settings` were read from."""

    settings: Settings
    state: Path
    port: int
    own: Mapping[str, str]

    @property
    def chain_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def service_url(self) -> str:
        host, _, port = self.settings.bind.rpartition(":")
        return f"http://{'127.0.0.1' if host in ('', '0.0.0.0') else host}:{port}"

    @property
    def log(self) -> Path:
        return self.state / "sandbox.log"

    @property
    def environ(self) -> dict[str, str]:
        """Variables for each program of this shop: our own, with the chain as explorer."""
        return dict(self.own) | {
            "BLOCKTILL_NETWORK": self.settings.network.name,
            "BLOCKTILL_DATABASE_URL": self.settings.database_url,
            "BLOCKTILL_EXPLORERS": self.chain_url,
            "BLOCKTILL_PRICE_SOURCES": f"{self.chain_url}/price#/usd",
            "BLOCKTILL_CURRENCY_SOURCES": f"{self.chain_url}/price#/{{currency}}",
            "BLOCKTILL_PRICE_QUORUM": "1",
        }

    @property
    def programs_environ(self) -> dict[str, str]:
        """Variables for service and check: they look often, log little, and fit the workbench."""
        benches = (self.chain_url, f"http://localhost:{self.port}")
        return {
            # The explorer is on this machine: each run of the check may look up every open page.
            "BLOCKTILL_EXPLORER_CALLS_PER_HOUR": "100000",
            **self.environ,
            "BLOCKTILL_MERCHANT_PAGES": "on",
            "BLOCKTILL_GREENFIELD": "on",
            "BLOCKTILL_FRAME_ANCESTORS": " ".join(
                [*self.settings.frame_ancestors, *benches]
            ),
            # The pages ask every two seconds: a line for each would bury what matters in the log.
            "GUNICORN_CMD_ARGS": f"--log-level warning {self.own.get('GUNICORN_CMD_ARGS', '')}",
        }

    def require_fit(self) -> None:
        """Raises CommandError for another network, a socket file, a port that is taken."""
        if self.settings.network.name != "regtest":
            raise CommandError(
                f"the sandbox is for regtest only, not for {self.settings.network.name}:"
                " unset BLOCKTILL_NETWORK and the variables that go with it"
            )
        if self.settings.bind.startswith("unix:"):
            raise CommandError(
                "the sandbox serves on a port; BLOCKTILL_BIND names a socket file"
            )
        _refuse_taken(f"127.0.0.1:{self.port}", "`blocktill sandbox --port`")
        _refuse_taken(self.settings.bind, "BLOCKTILL_BASE_URL or BLOCKTILL_BIND")

    def prepare_folders(self) -> None:
        """Makes folders for their owner alone; `parents=True` would leave the upper ones open."""
        missing = [
            folder
            for folder in (self.state, *self.state.parents)
            if not folder.exists()
        ]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700)


def _refuse_taken(bind: str, name: str) -> None:
    host, _, port = bind.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError as error:
            raise CommandError(
                f"{bind} is taken ({error.strerror}): is another sandbox running? If not, stop what"
                f" listens there, or choose another port with {name}"
            ) from None


def command_line(program: str, environ: Mapping[str, str]) -> str:
    """`blocktill` for another terminal: with the variables that it needs, but no secrets."""
    settings = read(environ)
    needed = {
        name: shown(name, value)
        for name, value in sorted(environ.items())
        if name.startswith("BLOCKTILL_")
        if read({n: v for n, v in environ.items() if n != name}) != settings
    }
    assigned = [f"{name}={shlex.quote(value)}" for name, value in needed.items()]
    own = (
        [program]
        if Path(program).name == "blocktill"
        else [sys.executable, "-m", "btcpay"]
    )
    return " ".join([*assigned, *own])
