"""The totals that a balance is read from equal the sum of the outputs, whatever happens."""

import random

import pytest

from btcpay.bitcoin.address import script_of
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.payer.wallet import double_spends, replace
from btcpay.values.errors import ExplorerError
from btcpay.values.money import MAX_MONEY_SATS
from tests.support.builders import REGTEST, dump
from tests.support.fake_esplora import tx_of
from tests.support.scenes import assert_sound

pytestmark = pytest.mark.both_databases


@pytest.mark.parametrize("seed", range(6))
def test_totals_equal_the_sum_of_the_outputs_through_a_random_life(till, seed):
    chance = random.Random(seed)
    chain = till.sandbox.chain
    wallet = till.sandbox.wallet
    invoices = [till.shop.invoice(amount) for amount in (5, 20, 80, 10, 40)]
    steps = {
        "pay": lambda: till.pay(
            chance.choice(invoices), chance.randint(1_000, 200_000)
        ),
        "mine": lambda: till.mine(),
        "replace": lambda: replace(wallet, till.now, away=chance.random() < 0.5),
        "reorganise": lambda: chain.reorganise(1, till.now),
        "check": till.check,
    }
    for _ in range(60):
        till.clock.move(seconds=chance.randint(1, 600))
        try:
            steps[chance.choice(list(steps))]()
        except (BadRequest, ExplorerError):
            continue
        assert_sound(till.shop.environ["BLOCKTILL_DATABASE_URL"])
    till.check()
    assert till.balance()[1] > 0


def show(till, invoice, sats):
    """From now on the explorer shows so much, waiting, at this invoice's address."""
    address = invoice["deposit_address"]
    number = invoice["amount_sats"] * 10_000 + len(till.liar.lies)
    shown = [tx_of(number, script_of(address, REGTEST), sats)]
    till.liar.lies[f"/address/{address}/txs/mempool$"] = lambda _: shown


@pytest.mark.parametrize("overpaid_sats", [0, 1])
def test_a_look_that_takes_the_total_beyond_what_can_exist_is_refused(
    lied_to, caplog, overpaid_sats
):
    till = lied_to()
    first = till.shop.invoice()
    second = till.shop.invoice()
    show(till, first, MAX_MONEY_SATS - 1_000)
    assert till.look_for(first).complete
    show(till, second, 1_000 + overpaid_sats)
    before = dump(till.shop)
    run = till.checker().run([second["id"]])
    if not overpaid_sats:
        assert run.failed == [] and till.balance() == (0, MAX_MONEY_SATS)
        return
    assert run.failed == [second["id"]] and not run.complete
    assert "21 million" in caplog.text
    (failures,) = till.shop.sql(
        f"SELECT failures FROM invoice WHERE id = '{second['id']}'"  # noqa: S608
    ).fetchone()
    after = dump(till.shop)
    assert failures == 1 and after.pop("invoice") and before.pop("invoice")
    assert after == before


def test_what_a_block_proves_is_never_refused_for_what_a_lie_adds(lied_to):
    till = lied_to()
    first = till.shop.invoice()
    second = till.shop.invoice()
    show(till, first, MAX_MONEY_SATS)
    till.look_for(first)
    assert till.confirm(second).new_statuses == {second["id"]: "paid"}
    assert_sound(till.shop.environ["BLOCKTILL_DATABASE_URL"])


def test_a_reorganisation_is_never_refused_for_what_a_coin_that_comes_back_adds(
    lied_to,
):
    till = lied_to()
    first = till.shop.invoice()
    second = till.shop.invoice()
    till.confirm(first)
    height = till.sandbox.chain.ledger.height
    till.shop.sql(f"UPDATE output SET spent_height = {height}")  # noqa: S608
    till.shop.sql("UPDATE balance SET confirmed_sats = 0, total_sats = 0")
    show(till, second, MAX_MONEY_SATS)
    till.look_for(second)
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    assert not till.check().chain_failed
    assert till.shop.get(f"/invoices/{first['id']}").json["status"] == "open"
    assert_sound(till.shop.environ["BLOCKTILL_DATABASE_URL"])
