"""The table of docs/merchants/shop-plugins.md over a real chain: what public clients read."""

import json
import select
import subprocess
import sys
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path

import pytest

from btcpay.sandbox.payer.wallet import double_spends
from tests.support.bitcoin_node import FOLDER, why_not_installed
from tests.support.browser import ANSWER_S, lack
from tests.support.builders import Live
from tests.support.fake_esplora import open_till
from tests.support.hosted import Watch
from tests.support.paths import GONE, TESTS
from tests.support.plug_in import GreenfieldShop

pytestmark = [pytest.mark.both_databases, pytest.mark.slow]
ID = itemgetter("id")


def node_client():
    """btcpay-greenfield-node-client: the words that start it, and its surroundings."""
    if reason := why_not_installed():
        lack(reason)
    return ["node", FOLDER / "greenfield.js"], {}


def python_client():
    """btcpay-python-sdk, in a folder of its own: the package is called `btcpay` as ours is."""
    folder = Path(sys.prefix) / "sdk"
    if not (folder / "btcpay").is_dir():
        lack(
            f"btcpay-python-sdk is not in {folder}: CONTRIBUTING.md says how it is installed"
        )
    return [sys.executable, TESTS / "parts/greenfield/clients/sdk.py"], {
        "PYTHONPATH": str(folder)
    }


@contextmanager
def open_client(shop, live, words, environ):
    """Is called with the name of a call and what belongs to it."""
    words += [live.url, shop.issued.secret, shop.store]
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | environ
    pipe = subprocess.PIPE

    def call(*said):
        process.stdin.write(json.dumps(said) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], ANSWER_S)
        answer = ready and process.stdout.readline()
        assert answer, (
            f"no answer to {said}"
        )  # why is on its standard error, which pytest shows
        return json.loads(answer)

    with subprocess.Popen(
        words, env=environ, stdin=pipe, stdout=pipe, text=True
    ) as process:
        try:
            yield call
        finally:
            process.kill()


@pytest.fixture
def till(tmp_path, ticker):
    with open_till(tmp_path, ticker, Watch(), BLOCKTILL_GREENFIELD="on") as opened:
        yield opened


@pytest.fixture(params=[node_client, python_client])
def plugin(till, tmp_path, request):
    words, environ = request.param()
    shop = GreenfieldShop(till.shop)
    with (
        Live(till.shop, tmp_path) as live,
        open_client(shop, live, words, environ) as opened,
    ):
        yield opened


@pytest.mark.skipif("refunds" in GONE, reason="the part was deleted")
def test_a_client_asks_for_a_refund_and_finds_it_again(till, tmp_path):
    """The node client's own call, as WooCommerce's button makes it; the page is for its payer."""
    words, environ = node_client()
    shop = GreenfieldShop(till.shop)
    with (
        Live(till.shop, tmp_path) as live,
        open_client(shop, live, words, environ) as plugin,
    ):
        asked = {"name": "Order 27", "amount": "0.0003", "currency": "BTC"}
        made = plugin("refund", asked | {"paymentMethods": ["BTC"]})
        assert plugin("refunded", made["id"]) == made
    assert (made["amount"], made["currency"]) == ("0.00030000", "BTC")
    page = made["viewLink"].removeprefix(till.settings.base_url)
    assert "0.00030000" in till.shop.client.get(page).text


def test_what_public_clients_read_while_orders_are_paid(till, plugin):
    orders = {
        name: plugin("order", {"amount": "10000", "currency": "SATS"})
        for name in ("paid", "over", "part", "late", "canceled", "lost")
    }
    ours = {name: till.look(order) for name, order in orders.items()}

    def read():
        shown = {name: plugin("seen", order["id"]) for name, order in orders.items()}
        assert sorted(plugin("listed"), key=ID) == sorted(shown.values(), key=ID)
        return {
            name: f"{one['status']} {one['additionalStatus']}"
            for name, one in shown.items()
        }

    def came(name):
        (method,) = plugin("methods", orders[name]["id"])
        payments = [(one["value"], one["status"]) for one in method["payments"]]
        return method["totalPaid"], method["due"], payments

    new = dict.fromkeys(orders, "New None")
    assert read() == new
    till.pay(ours["paid"])
    till.pay(ours["over"], 12_000)
    till.pay(ours["part"], 4_000)
    till.look_for(*ours.values())
    assert read() == new | {
        "paid": "Processing None",
        "over": "Processing PaidOver",
        "part": "New PaidPartial",
    }
    assert came("part") == ("0.00004000", "0.00006000", [("0.00004000", "Processing")])
    plugin("cancel", orders["canceled"]["id"])
    till.mine()
    till.confirm(ours["lost"])
    settled = {
        "paid": "Settled None", "over": "Settled PaidOver", "part": "New PaidPartial",
        "late": "New None", "canceled": "Invalid Marked", "lost": "Settled None",
    }  # fmt: skip
    assert read() == settled
    assert came("over") == ("0.00012000", "0.00000000", [("0.00012000", "Settled")])
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    assert read() == settled | {"lost": "New None"}
    till.clock.move(hours=2)
    till.mine_and_check()
    till.confirm(ours["late"])
    assert read() == settled | {
        "part": "Expired PaidPartial",
        "late": "Expired PaidLate",
        "lost": "Expired None",
    }
