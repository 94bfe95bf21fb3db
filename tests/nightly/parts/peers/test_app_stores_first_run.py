"""The apps for Umbrel and StartOS, started as these do: from the password to a paid order.

No container runs here; tests/release/test_image.py runs the image as the same users.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.app_stores import (
    NETWORK,
    PASSWORD,
    Visitor,
    of_startos,
    of_umbrel,
    started,
)
from tests.support.builders import Clock, TickerServer, new_xpub, until
from tests.support.fake_esplora import serving_sandbox
from tests.support.fake_peer import FakePeer
from tests.support.payer import Page

PROFILE = {
    "name": "Harbour Roasters",
    "currency": "EUR",
    "timezone": "Europe/Berlin",
    "language": "en",
}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root becomes another"
)


@pytest.fixture(params=[of_umbrel, of_startos])
def platform(request):
    return request.param()


@pytest.fixture
def data(platform):
    """The folder of data, which the platform gives to the shop's user."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    os.chown(folder, *map(int, platform.user.split(":")))
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


def make_shop(owner):
    """The first run, from the page that the app opens at."""
    start = owner.ask("GET", owner.platform.start)
    assert "password" in Page(start.text).attributes
    answer = owner.ask("POST", "/merchant/login", data={"password": PASSWORD})
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


def order(customer, key):
    """An invoice of 25 dollars, and the path of its page."""
    answer = customer.ask(
        "POST",
        "/api/v1/invoices",
        json={"amount_usd": 25},
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 201
    invoice = answer.json()
    path = invoice["pay_url"].removeprefix(customer.platform.root)
    assert path == f"/pay/{invoice['id']}"
    return invoice, path


def test_from_the_password_that_the_platform_shows_to_a_paid_order(
    platform, tmp_path, data, chain, node
):
    log = tmp_path / "log"
    with TickerServer() as ticker, started(platform, log, data, node, ticker) as url:
        ticker.price("60000.00", eur="52000.00")
        owner = Visitor(platform, url, is_logged_in=True)
        customer = Visitor(platform, url)
        make_shop(owner)
        invoice, path = order(customer, issue_key(owner))
        assert customer.page(path).state == "waiting"
        stranger = customer.ask("GET", "/merchant")
        assert stranger is None or stranger.status_code == 401
        now = int(Clock()().timestamp())
        chain.wallet.pay(invoice["deposit_address"], invoice["amount_sats"], now)
        chain.chain.mine(1, now)
        until(
            lambda: customer.page(path).state == "paid",
            "the check to read the node's block",
            every_s=1,
        )
        assert "getheaders" in node.asked
    (database,) = data.glob("*.db")
    assert database.name == f"{NETWORK}.db"
    assert database.stat().st_uid == int(platform.user.partition(":")[0])
