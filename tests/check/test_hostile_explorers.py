"""What a hostile explorer, or somebody who sends dust, must not be able to do to the check."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from builders import Clock, TickerServer
from fake_esplora import LiedTo, Terminal, open_till, say
from peewee import OperationalError

from btcpay.check import run as check_module
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.misbehave import double_spends
from storage.queries import blocks

Lies = Callable[..., LiedTo]


@pytest.mark.parametrize("path", ["/blocks/tip/height", "/blocks/tip/hash", "/blocks$"])
def test_a_tip_that_nobody_worked_for_is_not_kept(lied_to: Lies, path):
    till = lied_to()
    invoice = till.shop.invoice()
    till.check()
    height = till.sandbox.chain.ledger.height
    till.liar.lies = {path: lambda told: "9" * 64 if "hash" in path else "90000000"}
    till.check()
    assert blocks.tip_height(till.shop.service.db) == height
    till.liar.lies = {}
    till.pay(invoice)
    till.mine()
    assert till.check().complete and till.look(invoice)["status"] == "paid"
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    assert till.look(invoice)["status"] == "open"


def test_the_second_explorer_is_asked_when_the_first_cannot_prove_its_tip(lied_to: Lies):
    till = lied_to(honest_too=True)
    till.shop.invoice(), till.check()
    till.mine()
    till.liar.lies = {"/blocks/tip/hash$": lambda _: "ab" * 32}
    assert till.check().complete
    height = till.sandbox.chain.ledger.height
    assert blocks.tip_height(till.shop.service.db) == height


def test_an_explorer_that_stands_still_is_left_for_the_next_and_expires_nothing(lied_to: Lies):
    till = lied_to(honest_too=True)
    till.shop.invoice(), till.mine(4), till.check()
    stuck = till.sandbox.chain.ledger.hashes[-4]
    invoice = till.shop.invoice(expires_in_hours=1)
    till.liar.lies = {"/blocks/tip/hash$": lambda _: stuck, "/address/": lambda _: []}
    till.pay(invoice)
    till.mine()
    till.clock.move(hours=2)
    assert till.check().changed == {invoice["id"]: "paid"}


def test_one_that_stood_still_since_before_a_payment_is_noticed_and_nothing_expires(lied_to: Lies):
    """All that it shows is true, as of some blocks ago: only another explorer tells."""
    till = lied_to(honest_too=True)
    paid, ending = (till.shop.invoice(expires_in_hours=1) for _ in range(2))
    till.check()
    stuck = till.sandbox.chain.ledger.tip.hash
    till.pay(paid)
    till.clock.move(minutes=50)
    till.mine(3)
    till.clock.move(minutes=20)
    till.liar.lies = {"/blocks/tip/hash$": lambda _: stuck, "/address/": lambda _: []}
    assert till.check().changed == {paid["id"]: "paid", ending["id"]: "expired"}


def test_while_another_ones_chain_cannot_be_read_nothing_expires(lied_to: Lies):
    till = lied_to(honest_too=True)
    ending = till.shop.invoice(expires_in_hours=1)
    till.check()
    till.clock.move(hours=2)
    first, second = till.settings.explorers
    till.shop.service = replace(
        till.shop.service, settings=replace(till.settings, explorers=(second, first))
    )
    till.liar.lies = {
        "/blocks/tip/height": lambda text: str(int(text) + 3),
        "/blocks/tip/hash": lambda _: "ab" * 32,
    }
    run = till.check()
    assert (run.complete, run.changed) == (False, {}) and "3 blocks more" in run.stuck
    till.liar.lies = {"/blocks/tip/height": lambda text: str(int(text) + 2)}
    assert till.check().changed == {ending["id"]: "expired"}


def test_on_a_chain_that_has_stood_still_for_two_hours_nothing_expires_on_mainnet(lied_to: Lies):
    till = lied_to()
    limited = replace(till.settings.network, tip_max_age=timedelta(hours=2))
    till.shop.service = replace(till.shop.service, settings=replace(till.settings, network=limited))
    ending = till.shop.invoice(expires_in_hours=1)
    till.mine()
    till.clock.move(hours=2)
    till.mine()
    till.clock.move(hours=2, seconds=1)
    run = till.check()
    assert (run.complete, run.changed, run.stuck) == (
        False,
        {},
        "no block has come for 120 minutes",
    )
    till.clock.move(seconds=-1)
    assert till.check().changed == {ending["id"]: "expired"}


def test_what_is_proven_is_not_said_away(lied_to: Lies):
    till = lied_to(BTCPAY_CONFIRMATIONS="3")
    invoice = till.shop.invoice(expires_in_hours=1)
    till.pay(invoice)
    till.mine()
    till.check()
    waits = {"status": {"confirmed": False}}
    till.liar.lies = {"/address/": lambda txs: [tx | waits for tx in txs]}
    till.look_for(invoice)
    till.liar.lies = {"/address/": lambda _: []}
    till.clock.move(hours=2)
    for _ in range(3):
        assert till.look_for(invoice).changed == {}
    till.liar.lies = {}
    till.mine(2)
    assert till.check().changed == {invoice["id"]: "paid"}


def test_a_hundred_small_amounts_to_one_address_take_nothing_from_the_others(
    tmp_path, ticker: TickerServer, clock: Clock
):
    with open_till(tmp_path, ticker, clock, BTCPAY_EXPLORER_CALLS_PER_HOUR="120") as till:
        victim, other = till.shop.invoice(), till.shop.invoice()
        till.pay(victim)
        for _ in range(60):
            till.pay(victim, 1_000)
        till.pay(other)
        till.mine()
        run = till.check()
        assert run.changed == {victim["id"]: "paid", other["id"]: "paid"}
        assert till.balance()[0] == victim["amount_sats"] + other["amount_sats"] + 60_000
        assert run.calls < 30


def test_a_coinbase_waits_for_its_maturity(lied_to: Lies):
    till = lied_to()
    invoice, chain = till.shop.invoice(), till.sandbox.chain
    chain._reward_script, usual = script_of(invoice["deposit_address"]), chain._reward_script
    till.mine()
    chain._reward_script = usual
    till.mine(98)
    for _ in range(2):
        assert till.check().changed == {} and till.balance()[0] == 0
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    (proof,) = Terminal(till).json("invoice", "show", invoice["id"], "--proof")
    assert proof["payment"]["position"] == 0


@pytest.mark.parametrize("bad_ones", [2, 8])
def test_addresses_that_always_fail_do_not_keep_the_others_from_their_look(lied_to: Lies, bad_ones):
    till = lied_to(BTCPAY_EXPLORER_CALLS_PER_HOUR="600")
    bad = [till.shop.invoice(expires_in_hours=1) for _ in range(bad_ones)]
    good = [till.shop.invoice(expires_in_hours=1) for _ in range(12)]
    addresses = "|".join(invoice["deposit_address"] for invoice in bad)
    till.liar.lies = {addresses: lambda _: say("error", 500)}
    till.clock.move(hours=2)
    for _ in range(4):
        till.clock.move(minutes=1)
        till.check()
    assert {till.look(invoice)["status"] for invoice in good} == {"expired"}
    assert {till.look(invoice)["status"] for invoice in bad} == {"open"}
    till.liar.asked.clear()
    for _ in range(10):
        till.clock.move(minutes=1)
        till.check()
    assert till.liar.count(addresses) < 10 * bad_ones
    till.liar.lies = {}
    till.clock.move(hours=1)
    till.check()
    assert {till.look(invoice)["status"] for invoice in bad} == {"expired"}


def test_a_run_that_ends_with_an_error_gives_back_what_it_had_counted(
    tmp_path, ticker: TickerServer, clock: Clock, monkeypatch
):
    with open_till(tmp_path, ticker, clock, BTCPAY_EXPLORER_CALLS_PER_HOUR="600") as till:
        till.shop.invoice()

        def locked(*_: object) -> None:
            raise OperationalError("database is locked")

        till.check()
        before = till.explorers().allowance().left
        monkeypatch.setattr(check_module, "watched_of", locked)
        for _ in range(3):
            with pytest.raises(OperationalError):
                till.checker().run()
        assert till.explorers().allowance().left == before - 3
