"""Announcements of sources: seen, joined, replaced and taken back, without any explorer's word."""

from datetime import timedelta

import pytest

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut, parse_tx
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.sources import AnnouncedTx
from btcpay.check.announcements import Announcements
from btcpay.check.report import Report
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer import wallet as wallets

pytestmark = pytest.mark.both_databases


def waiting(till, txid):
    return till.sandbox.chain.mempool.entries[txid].tx


class FakeListener:
    """In place of a listener."""

    def __init__(self):
        self.is_wanted = False
        self.queue = list[AnnouncedTx]()

    def listen(self, is_wanted):
        self.is_wanted = is_wanted

    def take(self):
        announced = self.queue
        self.queue = []
        return announced

    def replaces(self, new, old):
        return True


def announce(till, *transactions):
    """Enough sources announce these, in this order."""
    queue = [AnnouncedTx(tx.raw, "a peer", till.clock()) for tx in transactions]
    report = Report()
    listener = FakeListener()
    listener.queue = queue
    Announcements(till.shop.service.db, till.settings, listener, till.clock).apply(
        report
    )
    assert not report.new_statuses


def received_sats(till, *invoices):
    """Satoshis that count towards each, all of which wait."""
    paths = [f"/pay/{invoice['id']}/status" for invoice in invoices]
    found = [till.shop.client.get(path).json for path in paths]
    assert [one["status"] for one in found] == ["open"] * len(found)
    assert till.balance() == (0, sum(one["received_sats"] for one in found))
    return [one["received_sats"] for one in found]


def test_what_is_announced_is_seen_and_takes_nothing_else_back(lied_to):
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="600")
    one = till.shop.invoice()
    other = till.shop.invoice()
    half = one["amount_sats"] // 2
    first = till.pay(one, half)
    second = till.pay(other)
    third = till.pay(one, half)
    stranger = till.sandbox.wallet.pay(till.sandbox.wallet.address, 20_000, till.now)
    announce(till, waiting(till, first), waiting(till, stranger))
    assert received_sats(till, one, other) == [half, 0]
    announce(till, waiting(till, second), waiting(till, third), waiting(till, first))
    assert received_sats(till, one, other) == [2 * half, other["amount_sats"]]
    assert (till.kinds(one), till.kinds(other)) == (["seen"] * 2, ["seen"])
    till.open_page(other)
    assert till.check().complete
    assert till.liar.asked and not any("/address/" in path for path in till.liar.asked)
    assert till.mine_and_check().new_statuses[other["id"]] == "paid"
    announce(till, till.sandbox.chain.find(second).tx)  # late: the block stands
    assert till.kinds(other) == ["seen", "moved", "payment", "paid"]


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("away", [False, True], ids=["a higher fee", "a double spend"])
def test_what_spends_its_coins_otherwise_takes_it_back(till, away, at_once):
    invoice = till.shop.invoice(expires_in_hours=1)
    other = till.shop.invoice()
    lost = waiting(till, till.pay(invoice))
    kept = waiting(till, till.pay(other))
    announce(till, kept)
    if not at_once:
        announce(till, lost)
        till.clock.move(minutes=61)  # raising a fee makes nobody late
    instead = waiting(
        till, wallets.replace(till.sandbox.wallet, till.now, lost.txid, away)
    )
    announce(till, *([lost, instead] if at_once else [instead]))
    sats = 0 if away else invoice["amount_sats"]
    assert received_sats(till, invoice, other) == [sats, other["amount_sats"]]
    assert sorted(till.kinds(invoice)) == ["seen"] * (1 if away else 2) + ["vanished"]
    assert till.kinds(other) == ["seen"]
    till.mine()
    ended = "paid" if not away else None if at_once else "expired"
    assert till.check().new_statuses.get(invoice["id"]) == ended


def test_a_row_that_is_spoiled_keeps_no_other_payment_back(till, caplog):
    invoice = till.shop.invoice()
    other = till.shop.invoice()
    announce(till, waiting(till, till.pay(invoice, 5_000)))
    till.shop.sql("UPDATE output SET inputs = '[3]'")
    both = waiting(till, till.pay_outputs((invoice, 6_000), (other, 7_000)))
    announce(till, both)
    assert till.kinds(other) == ["seen"] and "are damaged" in caplog.text


def test_sources_are_heard_while_a_page_is_open_and_what_they_invent_fails_no_run(till):
    listener = FakeListener()
    report = Report()
    invoice = till.shop.invoice()
    announcements = Announcements(
        till.shop.service.db, till.settings, listener, till.clock
    )
    for minutes, opens, is_wanted in [
        (0, False, False),
        (1, True, True),
        (9, False, True),
    ]:
        till.clock.move(minutes=minutes)
        if opens:
            till.open_page(invoice)
        assert not announcements.collect() and listener.is_wanted == is_wanted
    script = script_of(invoice["deposit_address"])
    for number, sats in enumerate(
        [10**15, 10**15, 10**15, 5_000]
    ):  # three are more than there is
        coin = TxIn(Outpoint(f"{number + 1:064x}", 0), b"", 0)
        tx = Tx(2, (coin,), (TxOut(sats, script),), 0)
        listener.queue.append(AnnouncedTx(tx.raw, "a peer", till.clock()))
    assert announcements.collect()
    announcements.apply(report)
    assert till.kinds(invoice) == ["seen"] * 3 and report == Report()
    till.clock.move(minutes=2)
    assert not announcements.collect() and not listener.is_wanted


class Heard(Explorers):
    """Their blocks are those of sources that announce, too."""

    lag = timedelta(minutes=1)


def test_an_explorer_that_has_not_heard_of_it_yet_takes_nothing_back(till):
    invoice = till.shop.invoice()
    raw = till.sandbox.wallet.draft({invoice["deposit_address"]: 5_000})
    announce(till, parse_tx(raw))  # which no explorer ever has
    for minutes, kinds in [(0, ["seen"]), (2, ["seen", "vanished"])]:
        till.clock.move(minutes=minutes)
        report = till.checker(explorers=till.explorers(kind=Heard)).run()
        assert report.looked_at == 1 and till.kinds(invoice) == kinds
