"""Public clients of Greenfield, as processes that ask a service over HTTP what the tests want."""

import json
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bitcoin_node import FOLDER, why_not_installed
from browser import lack
from builders import Live
from greenfield import GreenfieldShop
from paths import TESTS

ANSWER_S = 40  # generous: other work may run on the machine
SDK = TESTS / "greenfield/clients"
Plugin = Callable[..., Any]  # is called with the name of a call and what belongs to it


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
) -> Iterator[Plugin]:
    words += [live.url, shop.issued.secret, shop.store]
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | environ
    pipe = subprocess.PIPE

    def call(*said: Any) -> Any:
        process.stdin.write(json.dumps(said) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], ANSWER_S)
        answer = ready and process.stdout.readline()
        assert answer, f"no answer to {said}"  # why is on its standard error, which pytest shows
        return json.loads(answer)

    with subprocess.Popen(words, env=environ, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield call
        finally:
            process.kill()
