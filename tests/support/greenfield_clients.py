"""Public clients of Greenfield, as processes that ask a service over HTTP what the tests want."""

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bitcoin_node import FOLDER, why_not_installed
from browser import lack
from builders import Live
from greenfield import GreenfieldShop
from paths import TESTS

Json = dict[str, Any]
ANSWER_S = 40  # generous: other work may run on the machine
SDK = TESTS / "greenfield/clients"


class Client:
    """What GreenfieldShop can do, by somebody else's code."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _call(self, *said: Any) -> Any:
        self._process.stdin.write(json.dumps(said) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_S)
        answer = ready and self._process.stdout.readline()
        assert answer, f"no answer to {said}"  # why is on its standard error, which pytest shows
        return json.loads(answer)

    def order(self, amount: str, currency: str, **fields: Any) -> Json:
        return self._call("order", {"amount": amount, "currency": currency} | fields)

    def seen(self, order: Json) -> Json:
        return self._call("seen", order["id"])

    def listed(self) -> list[Json]:
        return self._call("listed")

    def methods(self, order: Json) -> list[Json]:
        return self._call("methods", order["id"])

    def cancel(self, order: Json) -> None:
        self._call("cancel", order["id"])


def node_client() -> tuple[list[Any], dict[str, str]]:
    """btcpay-greenfield-node-client: the words that start it, and its surroundings."""
    if reason := why_not_installed():
        lack(reason)
    return ["node", FOLDER / "greenfield.js"], {}


def python_client() -> tuple[list[Any], dict[str, str]]:
    """btcpay-python-sdk, in a folder of its own: the package is called `btcpay` as ours is."""
    folder = Path(sys.prefix) / "sdk"
    if not (folder / "btcpay").is_dir():
        lack(f"btcpay-python-sdk is not in {folder}: CONTRIBUTING.md says how it is installed")
    return [sys.executable, SDK / "sdk.py"], {"PYTHONPATH": str(folder)}


@contextmanager
def open_client(
    shop: GreenfieldShop, live: Live, words: list[Any], environ: dict[str, str]
) -> Iterator[Client]:
    asking = [live.url, shop.issued.secret, shop.store]
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | environ
    pipe = subprocess.PIPE
    with subprocess.Popen([*words, *asking], env=environ, stdin=pipe, stdout=pipe, text=True) as it:
        try:
            yield Client(it)
        finally:
            it.kill()
