"""Coins that the merchant's wallet has moved: found with one probe, and only then asked for all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bip32 import BIP32
from bit import PrivateKeyTestnet
from builders import REGTEST, Clock, TickerServer
from fake_esplora import Json, LiedTo, open_lied_to

from btcpay.addresses import parse_account
from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.commands.administration import add_merchant
from btcpay.sandbox.coins import Spendable, sign
from btcpay.sandbox.script import script_of
from storage import balances, merchants, payments

ACCOUNT = "m/49'/1'/0'"
NOBODY = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[LiedTo]:
    """A shop that watches for a day after an invoice is finished; its wallet can spend."""
    with open_lied_to(tmp_path, ticker, clock, BTCPAY_WATCH_AFTER_EXPIRY_H="24") as opened:
        shop = opened.shop
        account = parse_account(wallet().get_xpub_from_path(ACCOUNT), REGTEST, "p2sh-p2wpkh")
        add_merchant(shop.service.db, "spender", account)
        shop.merchant_id = shop.service.db.only(merchants.BY_NAME, name="spender")["id"]
        shop.write_key, shop.read_key = shop.issue("write"), shop.issue("read")
        yield opened


def wallet() -> BIP32:
    return BIP32.from_seed(b"a merchant's wallet".ljust(32), network="test")


def paid_long_ago(till: LiedTo, count: int) -> list[Json]:
    """Invoices that were paid, and whose watch has ended."""
    made = [till.shop.invoice() for _ in range(count)]
    for invoice in made:
        till.pay(invoice)
    till.mine()
    assert len(till.check().changed) == count
    till.clock.move(hours=25)
    till.check()
    till.liar.asked.clear()
    return made


def sweep(till: LiedTo, *made: Json) -> None:
    """The merchant's wallet moves these coins, each in a transaction of its own."""
    for invoice in made:
        rows = till.shop.service.db.rows(payments.OUTPUTS, invoice_id=invoice["id"])
        index = till.shop.sql(
            f"SELECT address_index FROM invoice WHERE id = '{invoice['id']}'"  # noqa: S608
        ).fetchone()[0]
        key = wallet().get_privkey_from_path(f"{ACCOUNT}/0/{index}")
        coins = [
            Spendable(Outpoint(row["txid"], row["vout"]), row["amount_sats"], False) for row in rows
        ]
        total_sats = sum(coin.value_sats for coin in coins)
        outputs = [TxOut(total_sats - 500, script_of(NOBODY))]
        raw = sign(PrivateKeyTestnet.from_bytes(key), coins, outputs, rbf=False)
        till.sandbox.chain.accept(raw, till.now)
    till.mine()


def asked(till: LiedTo, *made: Json) -> list[bool]:
    """Whether each address was asked for since the last time."""
    found = [till.liar.count(invoice["deposit_address"]) > 0 for invoice in made]
    till.liar.asked.clear()
    return found


def balances_agree(till: LiedTo) -> bool:
    at: dict[str, Any] = {"merchant_id": till.shop.merchant_id}
    db = till.shop.service.db
    return db.only(balances.OF_MERCHANT, **at) == db.only(balances.RECOMPUTED, **at)


def test_one_funded_address_an_hour_is_asked_the_longest_unseen_first(till):
    made = paid_long_ago(till, 3)
    seen = []
    for _ in range(4):
        till.clock.move(hours=1, seconds=1)
        till.check()
        seen.append(asked(till, *made).index(True))
    assert sorted(seen[:3]) == [0, 1, 2] and seen[3] == seen[0]


@pytest.mark.parametrize(("minutes", "probed"), [(59, False), (61, True)])
def test_the_next_probe_comes_after_an_hour(till, minutes, probed):
    made = paid_long_ago(till, 2)
    till.clock.move(minutes=minutes)
    till.check()
    assert any(asked(till, *made)) is probed


def test_when_no_coin_has_moved_the_others_are_not_asked(till):
    made = paid_long_ago(till, 4)
    till.clock.move(hours=2)
    till.check()
    assert asked(till, *made).count(True) == 1
    till.check()
    assert asked(till, *made).count(True) == 0


def test_when_the_probed_coin_has_moved_all_others_are_asked_once(till):
    made = paid_long_ago(till, 4)
    left = made[0]
    before_sats = till.balance()[0]
    sweep(till, *made[1:])
    for _ in range(3):  # the first probe may be the one coin that stayed
        till.clock.move(hours=1, seconds=1)
        till.check()
        till.clock.move(minutes=1)
        till.check()
    assert till.balance() == (left["amount_sats"],) * 2
    assert before_sats > left["amount_sats"] and balances_agree(till)
    till.liar.asked.clear()
    till.clock.move(minutes=1)
    till.check()
    assert asked(till, *made) == [False] * 4


def test_a_coin_that_moves_while_its_address_is_watched_has_the_others_asked_too(till):
    made = paid_long_ago(till, 3)
    fresh = till.shop.invoice()
    till.pay(fresh)
    till.mine()
    till.check()
    sweep(till, *made, fresh)
    till.clock.move(minutes=1)
    till.check()
    till.clock.move(minutes=1)
    till.check()
    assert till.balance() == (0, 0) and balances_agree(till)


def test_a_merchant_without_coins_is_asked_nothing(till):
    made = paid_long_ago(till, 2)
    sweep(till, *made)
    for _ in range(2):
        till.clock.move(hours=1, seconds=1)
        till.check()
        till.check()
    assert till.balance() == (0, 0)
    till.liar.asked.clear()
    till.clock.move(hours=5)
    till.check()
    assert asked(till, *made) == [False, False]


def test_another_merchants_coins_are_left_alone(till):
    made = paid_long_ago(till, 2)
    shop, own_key = till.shop, till.shop.write_key
    shop.write_key = shop.issue("write", shop.service.db.only(merchants.BY_NAME, name="shop")["id"])
    other = shop.client.post(
        "/api/v1/invoices",
        json={"amount_usd": 25},
        headers={"Authorization": f"Bearer {shop.write_key}"},
    ).json
    shop.write_key = own_key
    till.pay(other)
    till.mine()
    till.check()
    till.clock.move(hours=25)
    till.check(), till.check()
    sweep(till, *made)
    till.clock.move(minutes=30)
    till.liar.asked.clear()
    till.check()
    assert asked(till, other) == [False]
