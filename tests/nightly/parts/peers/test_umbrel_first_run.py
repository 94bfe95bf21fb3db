"""The app for Umbrel, started as umbrelOS does: from the password that it shows to a paid order.

No container runs here; tests/release/test_image.py runs the image as the same user.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import requests

from tests.support import umbrel
from tests.support.builders import (
    Clock,
    TickerServer,
    among_strangers,
    answers,
    clean_environ,
    new_xpub,
    until,
)
from tests.support.fake_esplora import serving_sandbox
from tests.support.fake_peer import FakePeer
from tests.support.payer import Page
from tests.support.ports import free_port
from tests.support.project import instructions

USER = umbrel.services()[umbrel.SERVICE]["user"]
UID, GID = map(int, USER.split(":"))
# The clone of the project may lie where only root reads; nothing but its own can be written.
AS_USER = [
    *("setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
]
PROFILE = {
    "name": "Harbour Roasters",
    "currency": "EUR",
    "timezone": "Europe/Berlin",
    "language": "en",
}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root becomes another"
)


@pytest.fixture
def data():
    """The app's folder of data, in the way that umbrelOS makes it."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    os.chown(folder, UID, GID)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def chain(tmp_path):
    with serving_sandbox(tmp_path / "chain", Clock()) as (sandbox, _):
        yield sandbox


@pytest.fixture
def node(chain):
    """The node of the machine, on the network of the tests."""

    def blocks():
        return [chain.chain.ledger.blocks[hash] for hash in chain.chain.ledger.hashes]

    with FakePeer(blocks, lambda: int(Clock()().timestamp())) as peer:
        yield peer


class Visitor:
    """A browser on the app's address: Umbrel's proxy lets it pass, or asks it to log in."""

    def __init__(self, service_url, is_logged_in=False):
        self.service_url = service_url
        self.is_logged_in = is_logged_in  # to Umbrel
        self.session = requests.Session()
        self.session.headers["X-Forwarded-For"] = "192.168.1.20"

    def ask(self, method, path, **more):
        if not (self.is_logged_in or umbrel.is_open(path)):
            return None
        url = f"http://{umbrel.DOMAIN}:8378"
        headers = more.pop("headers", {}) | {"Host": url.removeprefix("http://")}
        if method == "POST":
            headers["Origin"] = url
        return self.session.request(
            method,
            self.service_url + path,
            headers=headers,
            allow_redirects=False,
            timeout=60,
            **more,
        )

    def page(self, path):
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)


def in_place(text, data):
    """A setting for the container, here: its folder of data lies elsewhere."""
    (mounted,) = umbrel.services()[umbrel.SERVICE]["volumes"]
    return text.replace(mounted.rpartition(":")[2], str(data))


@contextmanager
def started(folder, data, node, ticker):
    """The service's URL. Its prices are the test's, and its port is any free one."""
    address, _, port = node.place.rpartition(":")
    written = umbrel.environment(
        data,
        APP_BITCOIN_NETWORK="regtest",
        APP_BITCOIN_NODE_IP=address,
        APP_BITCOIN_P2P_PORT=port,
    )
    url = f"http://127.0.0.1:{free_port()}"
    environ = {name: in_place(text, data) for name, text in written.items()} | {
        "BLOCKTILL_BIND": url.removeprefix("http://"),
        "BLOCKTILL_METRICS_BIND": "",
        "BLOCKTILL_PRICE_SOURCES": f"{ticker.url}#/usd",
        "BLOCKTILL_CURRENCY_SOURCES": f"{ticker.url}#/{{currency}}",
    }
    command = re.findall(r'"(\w+)"', dict(instructions())["CMD"])
    log = folder / "service.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*AS_USER, sys.executable, "-P", "-m", "btcpay", *command],
            env=clean_environ(**environ),
            cwd=among_strangers(data),
            stdout=stream,
            stderr=stream,
        )
    with process:
        try:
            until(lambda: answers(f"{url}/healthz") or process.poll() is not None, url)
            assert process.poll() is None, log.read_text()
            yield url
        finally:
            print(log.read_text())
            with suppress(ProcessLookupError):
                process.terminate()
    assert process.returncode == 0


def make_shop(owner):
    """The first run, from the page that the app opens at."""
    start = umbrel.read_yaml("umbrel-app.yml")["path"]
    assert "password" in Page(owner.ask("GET", start).text).attributes
    answer = owner.ask("POST", "/merchant/login", data={"password": umbrel.PASSWORD})
    path = answer.headers["Location"].removeprefix("..")
    assert answer.status_code == 303 and path.startswith("/merchant/start/")
    account = {"key": new_xpub(), "script": "p2wpkh", "skip": "0"}
    shown = owner.ask("POST", path, data=PROFILE | account)
    fields = Page(shown.text).values
    assert "same" in Page(shown.text).attributes
    made = owner.ask("POST", path, data=PROFILE | account | fields | {"same": "1"})
    assert made.status_code == 303
    assert "Harbour Roasters" in owner.page("/merchant").source


def issue_key(owner):
    token = owner.page("/merchant/keys").values["token"]
    form = {"token": token, "scope": "write", "name": "shop"}
    shown = owner.ask("POST", "/merchant/keys", data=form).text
    return re.search(r"sk_test_\w+", shown)[0]


def test_from_the_password_that_umbrel_shows_to_a_paid_order(
    tmp_path, data, chain, node
):
    with TickerServer() as ticker, started(tmp_path, data, node, ticker) as url:
        ticker.price("60000.00", eur="52000.00")
        owner = Visitor(url, is_logged_in=True)
        customer = Visitor(url)
        assert customer.ask("GET", "/merchant") is None
        make_shop(owner)
        bearer = {"Authorization": f"Bearer {issue_key(owner)}"}
        order = {"amount_usd": 25}
        answer = customer.ask("POST", "/api/v1/invoices", json=order, headers=bearer)
        invoice = answer.json()
        path = f"/pay/{invoice['id']}"
        assert answer.status_code == 201
        assert invoice["pay_url"] == f"http://{umbrel.DOMAIN}:8378{path}"
        assert customer.page(path).state == "waiting"
        now = int(Clock()().timestamp())
        chain.wallet.pay(invoice["deposit_address"], invoice["amount_sats"], now)
        chain.chain.mine(1, now)
        until(
            lambda: customer.page(path).state == "paid",
            "the check to read the node's block",
            every_s=1,
        )
        assert "getheaders" in node.asked
    files = [path for path in data.iterdir() if path.suffix == ".db"]
    assert [(path.name, path.stat().st_uid) for path in files] == [("regtest.db", UID)]
