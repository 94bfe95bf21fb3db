"""A chain replaced below our first header: reading begins anew, and what was proven stays."""

import pytest

from storage.queries import blocks
from tests.support.fake_esplora import Terminal
from tests.support.rival import Rival

pytestmark = pytest.mark.both_databases


@pytest.fixture
def till(lied_to):
    return lied_to(BLOCKTILL_CONFIRMATIONS="2")


def replaced(till, *, with_all=False):
    """Another chain from before our first header on; if wanted, with every payment."""
    paying = [
        tx
        for hash in till.sandbox.chain.ledger.hashes[102:]
        for tx in till.sandbox.chain.ledger.blocks[hash].txs[1:]
    ]
    (first,) = till.shop.sql("SELECT MIN(height) FROM block").fetchone()
    rival = Rival(till, first - 2).add(40)
    return rival.add(3, paying if with_all else [])


def paid_and_shallow(till):
    """An invoice that is paid, and one whose money is not deep enough."""
    paid = till.shop.invoice()
    shallow = till.shop.invoice()
    till.pay(paid)
    till.mine()
    assert till.confirm(shallow).new_statuses == {paid["id"]: "paid"}
    till.mine()
    till.clock.move(minutes=1)
    return paid, shallow


def test_a_replaced_chain_is_an_error_that_names_the_command(till, caplog):
    paid_and_shallow(till)
    till.liar.instead = replaced(till)
    assert till.check().chain_failed
    assert "`blocktill chain begin-anew`" in caplog.text


def test_payments_stay_and_what_is_no_payment_yet_waits_again(till):
    paid, shallow = paid_and_shallow(till)
    before = till.payments()
    balance = till.balance()
    rival = till.liar.instead = replaced(till)
    Terminal(till).run("chain", "begin-anew", "--yes")
    status = till.shop.client.get(f"/pay/{paid['id']}/status").json
    assert status["status"] == "paid" and status["confirmations"] >= 1
    assert till.shop.service.db.get_or_none(blocks.TOP) is None
    assert till.check().complete
    assert till.shop.service.db.get(blocks.TOP).hash == rival.blocks[-1].hash
    assert till.payments() == before and till.balance()[0] == balance[0]
    assert (
        till.look(paid)["status"] == "paid" and till.look(shallow)["status"] == "open"
    )
    # Nor does a reorganisation of the new chain take back what the old one has proven.
    del rival.blocks[-35:]
    rival.add(40)
    assert till.check().complete and till.payments() == before


def test_what_the_new_chain_has_too_is_found_in_it_and_counted_once(till):
    paid, shallow = paid_and_shallow(till)
    before = till.payments()
    till.liar.instead = replaced(till, with_all=True)
    Terminal(till).run("chain", "begin-anew", "--yes")
    assert till.check().new_statuses == {shallow["id"]: "paid"}
    assert till.payments(paid) == before and len(till.payments()) == 2
    assert till.balance()[0] == paid["amount_sats"] + shallow["amount_sats"]


def test_beginning_anew_asks_first_and_a_no_keeps_the_chain(till):
    paid_and_shallow(till)
    top = till.shop.service.db.get(blocks.TOP)
    _, said = Terminal(till).run("chain", "begin-anew", status=1)
    assert "Payments are kept" in said and till.shop.service.db.get(blocks.TOP) == top
