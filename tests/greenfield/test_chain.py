"""The table of docs/shop-plugins.md over a real chain: what a plug-in reads at each step."""

import pytest
from fake_esplora import open_till
from greenfield import GreenfieldShop

from btcpay.sandbox.payer.misbehave import double_spends

pytestmark = pytest.mark.both_databases
INVOICES = "/stores/STORE/invoices"


@pytest.fixture
def till(tmp_path, ticker, clock):
    with open_till(tmp_path, ticker, clock, BTCPAY_GREENFIELD="on") as opened:
        yield opened


def test_what_a_plug_in_reads_while_its_orders_are_paid(till):
    plugin = GreenfieldShop(till.shop)
    orders = {
        name: plugin.order("10000", "SATS")
        for name in ("paid", "over", "part", "late", "canceled", "lost")
    }
    ours = {name: till.look(order) for name, order in orders.items()}

    def read():
        shown = {name: plugin.seen(order) for name, order in orders.items()}
        return {name: f"{one['status']} {one['additionalStatus']}" for name, one in shown.items()}

    def came(name):
        (method,) = plugin.ask("GET", f"{INVOICES}/{orders[name]['id']}/payment-methods").json
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
    path = f"{INVOICES}/{orders['canceled']['id']}/status"
    assert plugin.ask("POST", path, {"status": "Invalid"}).status_code == 200
    till.mine()
    till.confirm(ours["lost"])
    settled = {
        "paid": "Settled None",
        "over": "Settled PaidOver",
        "part": "New PaidPartial",
        "late": "New None",
        "canceled": "Invalid Marked",
        "lost": "Settled None",
    }
    assert read() == settled
    assert came("over") == ("0.00012000", "0.00000000", [("0.00012000", "Settled")])
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    assert read() == settled | {"lost": "New None"}
    till.clock.move(hours=2)
    till.mine()
    till.check()
    till.confirm(ours["late"])
    assert read() == settled | {
        "part": "Expired PaidPartial",
        "late": "Expired PaidLate",
        "lost": "Expired None",
    }
