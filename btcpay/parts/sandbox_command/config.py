"""The configuration of a sandbox: its folder, its ports, and the environment of its programs."""

import shlex
import socket
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from btcpay.settings.secrets import without_secrets
from btcpay.settings.settings import Settings, read
from btcpay.values.errors import CommandError

LOCALHOST = "127.0.0.1"
ANY_HOST = ("", "0.0.0.0")


@dataclass(frozen=True)
class SandboxConfig:
    """The configuration of a sandbox.

    - `state`: the sandbox's folder.
    - `port`: the port of the chain and the workbench on 127.0.0.1.
    - `own_environ`: the environment variables from which `settings` come.
    """

    settings: Settings
    state: Path
    port: int
    own_environ: Mapping[str, str]

    @property
    def chain_url(self) -> str:
        return f"http://{LOCALHOST}:{self.port}"

    @property
    def service_url(self) -> str:
        host, _, port = self.settings.bind.rpartition(":")
        if host in ANY_HOST:
            host = LOCALHOST
        return f"http://{host}:{port}"

    @property
    def log(self) -> Path:
        return self.state / "sandbox.log"

    @property
    def environ(self) -> dict[str, str]:
        """The environment for each program of the sandbox's shop.

        It is `own_environ`, with the sandbox's chain as block explorer and as price
        source.
        """
        return dict(self.own_environ) | {
            "BLOCKTILL_NETWORK": self.settings.network.name,
            "BLOCKTILL_DATABASE_URL": self.settings.database_url,
            "BLOCKTILL_EXPLORERS": self.chain_url,
            "BLOCKTILL_PRICE_SOURCES": f"{self.chain_url}/price#/usd",
            "BLOCKTILL_CURRENCY_SOURCES": f"{self.chain_url}/price#/{{currency}}",
            "BLOCKTILL_PRICE_QUORUM": "1",
        }

    @property
    def programs_environ(self) -> dict[str, str]:
        """The environment for the programs that `sandbox` starts: chain, service and check.

        In addition to `environ`, it allows many explorer calls, logs only warnings, and
        lets the workbench show the service's pages in frames.
        """
        workbench = [self.chain_url, f"http://localhost:{self.port}"]
        frame_ancestors = [*self.settings.frame_ancestors, *workbench]
        gunicorn_args = self.own_environ.get("GUNICORN_CMD_ARGS", "")
        return {
            # Practically no limit: the explorer is on this machine.
            "BLOCKTILL_EXPLORER_CALLS_PER_HOUR": "100000",
            **self.environ,
            "BLOCKTILL_MERCHANT_PAGES": "on",
            "BLOCKTILL_GREENFIELD": "on",
            "BLOCKTILL_FRAME_ANCESTORS": " ".join(frame_ancestors),
            # Open pages poll every two seconds, and a line for each request would flood the log.
            "GUNICORN_CMD_ARGS": f"--log-level warning {gunicorn_args}",
        }

    def require_fit(self) -> None:
        """Raises CommandError if the sandbox cannot run with this configuration.

        It needs regtest, a TCP port for the service (no socket file), and free ports.
        """
        if self.settings.network.name != "regtest":
            raise CommandError(
                f"the sandbox is for regtest only, not for {self.settings.network.name}:"
                " unset BLOCKTILL_NETWORK and the variables that go with it"
            )
        if self.settings.bind.startswith("unix:"):
            raise CommandError(
                "the sandbox serves on a port; BLOCKTILL_BIND names a socket file"
            )
        _refuse_taken(f"{LOCALHOST}:{self.port}", "`blocktill sandbox --port`")
        _refuse_taken(self.settings.bind, "BLOCKTILL_BASE_URL or BLOCKTILL_BIND")

    def prepare_folders(self) -> None:
        """Creates the sandbox's folder and its missing parents.

        All get the mode 700, while `mkdir(parents=True)` would create the parents with
        the default mode.
        """
        folders = [self.state, *self.state.parents]
        missing = [folder for folder in folders if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=stat.S_IRWXU)


def _refuse_taken(bind: str, name: str) -> None:
    """Raises CommandError if somebody listens on `bind` (host:port).

    `name` is the option or variable with which the user can choose another port.
    """
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
    """Returns the beginning of a `blocktill` command line, to copy into another terminal.

    The text sets the environment variables that the command needs. Secrets in their
    values are replaced by `***`.
    """
    words = []
    for name, text in _required_variables(environ).items():
        shown_text = without_secrets(name, text)
        words.append(f"{name}={shlex.quote(shown_text)}")
    if Path(program).name == "blocktill":
        words.append(shlex.quote(program))
    else:  # it was started by `python -m btcpay`
        words += [shlex.quote(sys.executable), "-m", "btcpay"]
    return " ".join(words)


def _required_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the BLOCKTILL_* variables without which the settings would differ."""
    settings = read(environ)
    required = {}
    for name, text in sorted(environ.items()):
        if not name.startswith("BLOCKTILL_"):
            continue
        environ_without = {**environ}
        del environ_without[name]
        if read(environ_without) != settings:
            required[name] = text
    return required
