"""What a hostile explorer, or somebody who sends dust, must not be able to do to the check."""

from collections.abc import Callable

import pytest
from btcpay.check.reorg import gives_up
from btcpay.explorers.calls import PROVE_TIP
from builders import Clock, TickerServer
from fake_esplora import Json, LiedTo, Reply, Terminal, open_till, say
from peewee import OperationalError

from btcpay.check import run as check_module
from btcpay.networks import NETWORKS
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.mischief import double_spends
from storage.queries import meta

Lies = Callable[..., LiedTo]


def test_a_height_without_work_does_not_end_the_following_of_reorganisations(lied_to: Lies):
    till = lied_to()
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check(), till.check()
    before = meta.all(till.shop.service.db)
    tip = till.sandbox.chain.ledger.tip.hash
    till.liar.lies = {"/blocks/tip/height$": lambda _: "90000000"}
    till.liar.instead = lambda path: say(tip) if path == "/block-height/90000000" else None
    assert not till.check().complete
    till.liar.lies, till.liar.instead = {}, lambda _: None
    assert meta.all(till.shop.service.db)["high_height"] == before["high_height"]
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    assert till.look(invoice)["status"] == "open" and till.balance() == (0, 0)


@pytest.mark.parametrize("paid", [False, True], ids=["nothing was ever paid", "something was"])
def test_a_height_that_is_not_proven_is_not_kept(lied_to: Lies, paid):
    till = lied_to()
    till.check()
    if paid:
        till.pay(till.shop.invoice())
        till.mine(8)
        till.check()
    before = meta.all(till.shop.service.db)
    till.liar.lies = {"/blocks/tip/height$": lambda _: "100000000"}
    assert not till.check().complete
    after = meta.all(till.shop.service.db)
    assert {n: v for n, v in after.items() if "height" in n} == {
        n: v for n, v in before.items() if "height" in n
    }
    till.liar.lies = {}
    till.mine()
    assert till.check().complete
    height = till.sandbox.chain.ledger.height
    assert meta.tip_height(till.shop.service.db) == meta.proven_height(till.shop.service.db)
    assert meta.proven_height(till.shop.service.db) == height


def test_the_second_explorer_is_asked_when_the_first_cannot_prove_its_height(lied_to: Lies):
    till = lied_to(honest_too=True)
    till.liar.lies = {"/blocks/tip/height$": lambda _: "100000000"}
    assert till.check().complete
    assert meta.tip_height(till.shop.service.db) == till.sandbox.chain.ledger.height


def invent(till: LiedTo, height: int) -> None:
    """The liar has worked for one block of this height, which costs nothing on a test network."""
    till.liar.tip = height
    made = till.liar.block_at(height)

    def answer(path: str) -> Reply | None:
        if path == "/blocks/tip/height":
            return say(str(height))
        _, kind, key, *rest = path.split("/")
        is_its = key in (str(height), made.hash, made.txs[0].txid)
        return till.liar._proof(kind, key, rest) if is_its else None

    till.liar.instead = answer


def test_a_false_high_block_of_a_test_network_is_given_up_after_a_day(lied_to: Lies):
    till = lied_to()
    db, honest = till.shop.service.db, till.sandbox.chain.ledger.height
    till.check()
    invent(till, 90_000_000)
    assert till.check().complete and meta.proven_height(db) == 90_000_000
    till.liar.instead = lambda _: None
    for hours in (1, 22.9):
        till.clock.move(hours=hours)
        assert till.check().tip_failed
    till.clock.move(hours=0.2)
    assert till.check().complete and meta.proven_height(db) == meta.tip_height(db) == honest
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    assert till.look(invoice)["status"] == "open" and till.balance() == (0, 0)


def test_what_was_paid_in_such_a_block_is_taken_back(lied_to: Lies):
    till = lied_to()
    till.check()
    invoice = till.shop.invoice()
    script = script_of(invoice["deposit_address"])
    paid = till.liar.mine(script, invoice["amount_sats"], 90_000_000)
    invent(till, 90_000_000)
    of_block = till.liar.instead
    till.liar.instead = lambda path: (
        say([paid] if path.endswith("/txs") else [])
        if path.startswith("/address/")
        else till.liar._proof("tx", paid["txid"], path.split("/")[3:])
        if paid["txid"] in path
        else of_block(path)
    )
    assert till.check().changed == {invoice["id"]: "paid"}
    till.liar.instead = lambda _: None
    assert till.check().tip_failed
    till.clock.move(hours=24.1)
    for _ in range(3):
        assert till.check().complete
    assert till.look(invoice)["status"] == "open" and till.balance() == (0, 0)


@pytest.mark.parametrize(
    ("network", "hours", "given_up"),
    [
        pytest.param("testnet4", 24, False, id="a day without a new tip may pass"),
        pytest.param("testnet4", 24.1, True, id="more is given up on a test network"),
        pytest.param("mainnet", 9_000, False, id="on mainnet a proven height has cost work"),
    ],
)
def test_when_a_height_that_nobody_shows_is_given_up(clock: Clock, network, hours, given_up):
    tip_at = clock()
    clock.move(hours=hours)
    assert gives_up(NETWORKS[network], tip_at, clock()) is given_up


def test_a_height_for_whose_proof_there_is_no_quota_is_not_kept(lied_to: Lies):
    till = lied_to(BTCPAY_EXPLORER_CALLS_PER_HOUR="5")
    till.check()
    assert meta.tip_height(till.shop.service.db) is None


def test_a_height_without_work_makes_no_other_explorer_look_old(lied_to: Lies):
    till = lied_to(honest_too=True)
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.liar.lies = {
        "/blocks/tip/height$": lambda _: "99999999",
        "/address/": lambda _: say("no", 500),
    }
    assert till.check().complete
    assert till.kinds(invoice) == ["seen"]


def test_an_explorer_that_stands_still_is_left_for_the_next_and_expires_nothing(lied_to: Lies):
    till = lied_to(honest_too=True)
    first = till.shop.invoice()
    till.pay(first)
    till.mine(20)
    till.check()
    stuck = str(till.sandbox.chain.ledger.height)
    second = till.shop.invoice()
    till.pay(second)
    till.mine(3)
    till.check()
    invoice = till.shop.invoice(expires_in_hours=1)
    till.liar.lies = {"/blocks/tip/height$": lambda _: stuck, "/address/": lambda _: []}
    till.pay(invoice)
    till.mine()
    till.clock.move(hours=2)
    assert till.check().changed == {invoice["id"]: "paid"}


def test_what_is_proven_is_not_said_away(lied_to: Lies):
    till = lied_to(BTCPAY_CONFIRMATIONS="3")
    invoice = till.shop.invoice(expires_in_hours=1)
    till.pay(invoice)
    till.mine()
    till.check()
    till.liar.lies = {
        "/address/": lambda txs: [tx | {"status": {"confirmed": False}} for tx in txs]
    }
    till.check()
    till.liar.lies = {"/address/": lambda _: []}
    till.clock.move(hours=2)
    for _ in range(3):
        assert till.check().changed == {}
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
        for _ in range(30):
            till.clock.move(minutes=1)
            till.check()
        assert till.look(victim)["status"] == till.look(other)["status"] == "paid"
        assert 0 < len(till.payments()) < 62  # the rest is for the hours to come


def call_coinbase(is_one: bool) -> Callable[[list[Json]], list[Json]]:
    """Says of every transaction that it is a block's first, or of none."""
    return lambda txs: [
        tx | {"vin": [spent | {"is_coinbase": is_one} for spent in tx["vin"]]} for tx in txs
    ]


@pytest.mark.parametrize("confirmations", [1, 3])
def test_an_ordinary_payment_that_is_called_a_coinbase_waits_for_no_maturity(
    lied_to: Lies, confirmations
):
    till = lied_to(BTCPAY_CONFIRMATIONS=str(confirmations))
    till.liar.lies = {"/address/": call_coinbase(True)}
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(confirmations - 1 or 1)
    if confirmations > 1:
        till.check()
        till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    (proof,) = Terminal(till).json("invoice", "show", invoice["id"], "--proof")
    assert len(proof["headers"]) == proof["confirmations"] == confirmations


@pytest.mark.parametrize("said", [True, False], ids=["called one", "called none"])
def test_a_coinbase_waits_for_its_maturity_whatever_it_is_called(lied_to: Lies, said):
    till = lied_to()
    till.liar.lies = {"/address/": call_coinbase(said)}
    invoice, chain = till.shop.invoice(), till.sandbox.chain
    chain._reward_script, usual = script_of(invoice["deposit_address"]), chain._reward_script
    till.mine()
    chain._reward_script = usual
    till.mine(98)
    for _ in range(2):
        assert till.check().changed == {} and till.balance()[0] == 0
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}


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

        monkeypatch.setattr(check_module, "watchlist_of", locked)
        for _ in range(3):
            with pytest.raises(OperationalError):
                till.checker().run()
        assert till.explorers().allowance().left == 600 - 3 - PROVE_TIP
