"""Coins that the merchant's wallet has moved: found with one probe, and only then asked for all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import Clock, TickerServer
from fake_esplora import Json, LiedTo, open_lied_to
from sweeper import Sweeper

from storage import balances

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


def test_a_merchant_without_coins_is_asked_nothing(till, sweeper):
    made = paid_long_ago(till, sweeper, 2)
    sweep(till, sweeper, made)
    for _ in range(2):
        till.clock.move(hours=1, seconds=1)
        till.check()
        till.check()
    assert till.balance() == (0, 0)
    till.liar.asked.clear()
    till.clock.move(hours=5)
    till.check()
    assert asked(till, made) == [False, False]


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
