"""Coins that the merchant's wallet has moved: found with one probe, and only then asked for all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import Clock, TickerServer
from fake_esplora import Json, LiedTo, open_lied_to
from sweeper import Sweeper

from storage.queries import balances

ACCOUNT = "m/49'/1'/0'"
NOBODY = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[LiedTo]:
    """A shop that watches for a day after an invoice is finished."""
    with open_lied_to(tmp_path, ticker, clock, BTCPAY_WATCH_AFTER_EXPIRY_H="24") as opened:
        yield opened


@pytest.fixture
def sweeper(till: LiedTo) -> Sweeper:
    return Sweeper(till)


def paid_long_ago(till: LiedTo, sweeper: Sweeper, count: int) -> dict[str, Json]:
    """Invoices that were paid, and whose watch has ended, by the paying transaction."""
    invoices = [sweeper.invoice() for _ in range(count)]
    made = {till.pay(invoice): invoice for invoice in invoices}
    till.mine()
    assert len(till.check().changed) == count
    till.clock.move(hours=25)
    till.check()
    till.liar.asked.clear()
    return made


def sweep(till: LiedTo, sweeper: Sweeper, made: dict[str, Json]) -> None:
    """The merchant's wallet moves these coins, each in a transaction of its own."""
    for txid, invoice in made.items():
        sweeper.sweep(invoice, txid)
    till.mine()


def asked(till: LiedTo, made: dict[str, Json]) -> list[bool]:
    """Whether each address was asked for since the last time."""
    found = [till.liar.count(invoice["deposit_address"]) > 0 for invoice in made.values()]
    till.liar.asked.clear()
    return found


def balances_agree(till: LiedTo, sweeper: Sweeper) -> bool:
    at: dict[str, Any] = {"merchant_id": sweeper.merchant_id}
    db = till.shop.service.db
    return db.only(balances.OF_MERCHANT, **at) == db.only(balances.RECOMPUTED, **at)


def test_one_funded_address_an_hour_is_asked_the_longest_unseen_first(till, sweeper):
    made = paid_long_ago(till, sweeper, 3)
    seen = []
    for _ in range(4):
        till.clock.move(hours=1, seconds=1)
        till.check()
        seen.append(asked(till, made).index(True))
    assert sorted(seen[:3]) == [0, 1, 2] and seen[3] == seen[0]


@pytest.mark.parametrize(("minutes", "probed"), [(59, False), (61, True)])
def test_the_next_probe_comes_after_an_hour(till, sweeper, minutes, probed):
    made = paid_long_ago(till, sweeper, 2)
    till.clock.move(minutes=minutes)
    till.check()
    assert any(asked(till, made)) is probed


def test_when_no_coin_has_moved_the_others_are_not_asked(till, sweeper):
    made = paid_long_ago(till, sweeper, 4)
    till.clock.move(hours=2)
    till.check()
    assert asked(till, made).count(True) == 1
    till.check()
    assert asked(till, made).count(True) == 0


def test_when_the_probed_coin_has_moved_all_others_are_asked_once(till, sweeper):
    made = paid_long_ago(till, sweeper, 4)
    left = next(iter(made.values()))
    before_sats = till.balance()[0]
    sweep(till, sweeper, dict(list(made.items())[1:]))
    for _ in range(3):  # the first probe may be the one coin that stayed
        till.clock.move(hours=1, seconds=1)
        till.check()
        till.clock.move(minutes=1)
        till.check()
    assert till.balance() == (left["amount_sats"],) * 2
    assert before_sats > left["amount_sats"] and balances_agree(till, sweeper)
    till.liar.asked.clear()
    till.clock.move(minutes=1)
    till.check()
    assert asked(till, made) == [False] * 4


def test_a_coin_that_moves_while_its_address_is_watched_has_the_others_asked_too(till, sweeper):
    made = paid_long_ago(till, sweeper, 3)
    fresh = sweeper.invoice()
    txid = till.pay(fresh)
    till.mine()
    till.check()
    sweep(till, sweeper, made | {txid: fresh})
    till.clock.move(minutes=1)
    till.check()
    till.clock.move(minutes=1)
    till.check()
    assert till.balance() == (0, 0) and balances_agree(till, sweeper)


def test_of_coins_that_have_all_moved_one_an_hour_is_still_asked_for(till, sweeper):
    made = paid_long_ago(till, sweeper, 2)
    sweep(till, sweeper, made)
    for _ in range(2):
        till.clock.move(hours=1, seconds=1)
        till.check()
        till.check()
    assert till.balance() == (0, 0)
    till.liar.asked.clear()
    for _ in range(2):
        till.clock.move(hours=1, seconds=1)
        till.check()
        till.check()
        assert asked(till, made).count(True) == 1


# Who says that a coin has moved, and it has not


def say_spent(till: LiedTo, made: dict[str, Json], blocks_above: int = 1) -> None:
    """The explorer shows each coin as spent, so many blocks above its own."""

    def lie(txs: list[Json]) -> list[Json]:
        (paid,) = [tx for tx in txs if tx["txid"] in made]
        (vout,) = [n for n, o in enumerate(paid["vout"]) if o["value"] in amounts]
        status = paid["status"] | {"block_height": paid["status"]["block_height"] + blocks_above}
        spending = {"txid": paid["txid"], "vout": vout, "is_coinbase": False}
        return [*txs, {"txid": "ab" * 32, "vin": [spending], "vout": [], "status": status}]

    amounts = {invoice["amount_sats"] for invoice in made.values()}
    addresses = "|".join(invoice["deposit_address"] for invoice in made.values())
    till.liar.lies = {f"({addresses})/txs$": lie, f"({addresses})/txs/": lambda _: []}


@pytest.mark.parametrize("count", [1, 4])
def test_a_false_spend_is_taken_back_when_an_explorer_shows_the_coin_again(till, sweeper, count):
    made = paid_long_ago(till, sweeper, count)
    before = till.balance()
    till.mine()
    say_spent(till, made)
    for _ in range(3):
        till.clock.move(hours=1, seconds=1)
        till.check(), till.check()
    assert till.balance() == (0, 0)
    till.liar.lies = {}
    till.clock.move(hours=1, seconds=1)
    till.check()
    till.clock.move(minutes=1)
    till.check()
    assert till.balance() == before and balances_agree(till, sweeper)
    assert all(till.kinds(invoice)[-2:] == ["spent", "unspent"] for invoice in made.values())
    till.liar.asked.clear()
    till.clock.move(minutes=1)
    till.check()
    assert not any(asked(till, made))


def test_a_false_spend_among_many_true_ones_is_taken_back_first(till, sweeper):
    moved = paid_long_ago(till, sweeper, 6)
    sweep(till, sweeper, moved)
    for _ in range(8):
        till.clock.move(hours=1, seconds=1)
        till.check(), till.check()
    stays = paid_long_ago(till, sweeper, 1)
    till.mine()
    say_spent(till, stays)
    till.clock.move(hours=1, seconds=1)
    till.check()
    assert till.balance() == (0, 0)
    till.liar.lies = {}
    till.clock.move(hours=1, seconds=1)
    till.check()
    assert till.balance()[0] == next(iter(stays.values()))["amount_sats"]


@pytest.mark.parametrize(
    ("blocks_above", "left"),
    [
        pytest.param(-1, True, id="before the coin came"),
        pytest.param(0, False, id="in the coin's own block"),
        pytest.param(2, False, id="in the tip"),
        pytest.param(3, True, id="above the tip"),
    ],
)
def test_a_spend_is_only_believed_between_the_coins_block_and_the_tip(
    till, sweeper, blocks_above, left
):
    made = paid_long_ago(till, sweeper, 1)
    before = till.balance()
    till.mine(2)
    say_spent(till, made, blocks_above)
    till.clock.move(hours=1, seconds=1)
    run = till.check()
    assert till.balance() == (before if left else (0, 0))
    assert bool(run.failed) is (blocks_above < 0)


def test_a_known_spend_above_an_older_tip_is_no_false_one(till, sweeper):
    made = paid_long_ago(till, sweeper, 1)
    sweep(till, sweeper, made)
    till.clock.move(hours=1, seconds=1)
    till.check()
    assert till.balance() == (0, 0)
    till.liar.lies = {"/blocks/tip/height": lambda text: str(int(text) - 1)}
    till.clock.move(hours=1, seconds=1)
    till.check()
    assert asked(till, made) == [True] and till.balance() == (0, 0)


def test_another_merchants_coins_are_left_alone(till, sweeper):
    made = paid_long_ago(till, sweeper, 2)
    shop = till.shop
    other = shop.post("/invoices", {"amount_usd": 25}, shop.issue("write", shop.merchant_id)).json
    till.pay(other)
    till.mine()
    till.check()
    till.clock.move(hours=25)
    till.check(), till.check()
    sweep(till, sweeper, made)
    till.clock.move(minutes=30)
    till.liar.asked.clear()
    till.check()
    assert asked(till, {"": other}) == [False]
