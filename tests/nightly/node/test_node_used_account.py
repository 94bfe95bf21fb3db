"""A used account on a full node's chain: the shop begins behind it, and no old coin pays."""

import pytest

from btcpay.merchants.account import derive
from storage.queries import merchants
from tests.support.accounts import descriptor_of
from tests.support.fake_esplora import Terminal
from tests.support.node_till import open_chain, open_node_till
from tests.support.used_account import BLOCK_EVERY, SATS, USED


@pytest.fixture(scope="module")
def chain():
    with open_chain() as opened:
        yield opened


def pay_numbers(till, descriptor, indexes):
    """Pays these addresses of the account by one transaction."""
    network = till.settings.network
    till.node.pay_many(
        [(derive(descriptor, index, network), SATS) for index in indexes]
    )


def status(till, invoice):
    sql = f"SELECT status FROM invoice WHERE id = '{invoice['id']}'"  # noqa: S608
    return till.shop.sql(sql).fetchone()[0]


@pytest.mark.parametrize("form", ["p2wpkh", "p2wsh"])
def test_a_shop_begins_behind_two_hundred_used_addresses(chain, tmp_path, ticker, form):
    """Seen over an explorer of that node; one address gets money before the first invoice."""
    descriptor = descriptor_of(form)
    with open_node_till(tmp_path, ticker, chain) as till:
        for begin in range(0, len(USED), BLOCK_EVERY):
            pay_numbers(till, descriptor, USED[begin : begin + BLOCK_EVERY])
            till.mine()
        added = ("merchant", "add", "used", "--descriptor", descriptor, "--yes")
        said = Terminal(till).run(*added)[1]
        first = USED[-1] + 1
        assert f"the shop begins at {first}" in said
        till.shop.merchant_id = till.shop.service.db.get(
            merchants.BY_NAME, name="used"
        ).id
        pay_numbers(till, descriptor, [first])
        till.mine()
        till.clock.move(minutes=2)
        assert till.check().complete
        invoice = till.shop.invoice()
        address = derive(descriptor, first, till.settings.network)
        assert invoice["deposit_address"] == address
        # Late customers of the former shop: at a used number, in a gap, at its last order.
        pay_numbers(till, descriptor, [0, 150, first - 1])
        till.mine()
        till.clock.move(minutes=10)
        assert till.check().complete and status(till, invoice) == "open"
        till.pay(invoice)
        till.mine()
        till.check()
        assert status(till, invoice) == "paid"
