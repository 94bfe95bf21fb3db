"""The totals that a balance is read from equal the sum of the outputs, whatever happens."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import Clock, TickerServer
from fake_esplora import Till, open_till
from playhouse.migrations import Runner

from btcpay.errors import ExplorerError
from btcpay.sandbox.errors import BadRequest, Rejected
from btcpay.sandbox.mischief import double_spends, replace
from storage import balances
from storage.database import open_database
from storage.schema import MIGRATIONS


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    with open_till(tmp_path, ticker, clock) as opened:
        yield opened


def totals(till: Till) -> tuple[dict, dict]:
    """What is read, and what the outputs say."""
    db, merchant = till.shop.service.db, {"merchant_id": till.shop.merchant_id}
    return db.only(balances.OF_MERCHANT, **merchant), db.only(balances.RECOMPUTED, **merchant)


def test_a_new_merchant_has_nothing(till: Till) -> None:
    assert till.balance() == (0, 0)


def test_waiting_money_is_in_the_total_and_confirmed_money_in_both(till: Till) -> None:
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.check()
    assert till.balance() == (0, invoice["amount_sats"])
    till.mine()
    till.check()
    assert till.balance() == (invoice["amount_sats"], invoice["amount_sats"])


def test_a_reorganisation_takes_the_money_out_again(till: Till) -> None:
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check()
    chain, wallet = till.sandbox.chain, till.sandbox.wallet
    chain.reorganise(1, till.now, double_spends(wallet, 1))
    till.check()
    assert till.balance() == (0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_totals_equal_the_sum_of_the_outputs_through_a_random_life(till: Till, seed: int) -> None:
    chance = random.Random(seed)
    chain, wallet = till.sandbox.chain, till.sandbox.wallet
    invoices = [till.shop.invoice(amount) for amount in (5, 20, 80)]
    steps = {
        "pay": lambda: till.pay(chance.choice(invoices), chance.randint(1_000, 200_000)),
        "mine": lambda: till.mine(),
        "replace": lambda: replace(wallet, till.now, away=chance.random() < 0.5),
        "reorganise": lambda: chain.reorganise(1, till.now),
        "check": till.check,
    }
    for _ in range(60):
        till.clock.move(seconds=chance.randint(1, 600))
        try:
            steps[chance.choice(list(steps))]()
        except (BadRequest, Rejected, ExplorerError):
            continue
        read, summed = totals(till)
        assert read == summed
    till.check()
    assert till.balance()[1] > 0


def test_the_migration_sums_what_was_there_before(tmp_path: Path) -> None:
    db = open_database(f"sqlite:///{tmp_path}/old.db")
    runner = Runner(db.connection, str(MIGRATIONS))
    runner.up("0002_proof")
    raw = sqlite3.connect(tmp_path / "old.db")
    raw.executescript("""
        INSERT INTO merchant VALUES (1, 'rich', 'p2pkh', 'x', 'a', 2, 0),
            (2, 'poor', 'p2pkh', 'y', 'b', 0, 0);
        INSERT INTO invoice (id, merchant_id, status, amount_sats, amount_usd_quote, price_usd,
            deposit_address, address_index, created_at)
            VALUES ('inv_1', 1, 'open', 9, '1', '1', 'a', 0, 0);
        INSERT INTO payment (id, merchant_id, address_invoice_id, amount_sats, tx_hash, created_at)
            VALUES ('pay_1', 1, 'inv_1', 5, 't1', 0), ('pay_2', 1, 'inv_1', 7, 't2', 0);
        INSERT INTO output VALUES
            ('t1', 0, 'inv_1', 1, 5, 0, 0, NULL, 1, 'h', 0, NULL, 0, 'pay_1'),
            ('t2', 0, 'inv_1', 1, 7, 0, 0, NULL, 1, 'h', 0, 2, 0, 'pay_2'),
            ('t3', 0, 'inv_1', 1, 11, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL),
            ('t4', 0, 'inv_1', 1, 13, 0, 0, 5, NULL, NULL, NULL, NULL, 0, NULL);
    """)
    raw.close()
    runner.up()
    read = [db.only(balances.OF_MERCHANT, merchant_id=number) for number in (1, 2)]
    assert [tuple(row.values()) for row in read] == [(5, 16), (0, 0)]
