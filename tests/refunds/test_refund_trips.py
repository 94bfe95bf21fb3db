"""A refund from its making to the block that sends it, and back: on a chain, by the commands."""

import pytest
from attention_cases import after_cancellation, late, reason_of, short, too_much
from databases import about_sqlite, empty_database
from fake_esplora import Terminal
from other_database import backed_up, on
from shop_events import kinds
from shop_refunds import address, found, give, made, paid, send, sent

from btcpay.check.undo import begin_anew
from btcpay.refunds import acts
from btcpay.values.errors import Refused

pytestmark = pytest.mark.both_databases


def reorganise(till):
    till.sandbox.chain.reorganise(1, till.now)
    till.check()


def status(till, refund):
    row = found(till, refund)
    return row.status, row.tx_hash


def test_from_the_payers_address_to_the_block_and_back_and_to_another(till):
    invoice = paid(till)
    refund = made(till, invoice)
    assert (refund.status, refund.amount_sats) == ("requested", invoice["amount_sats"])
    txid = send(till, give(till, refund, address(1)))
    till.check()
    assert status(till, refund) == ("ready", None)
    till.mine_and_check()
    assert status(till, refund) == ("sent", txid)
    assert till.kinds(invoice)[-3:] == ["refund made", "refund ready", "refund sent"]
    reorganise(till)
    assert status(till, refund) == ("ready", None)
    till.mine_and_check()
    assert status(till, refund) == ("sent", txid)
    told = [f"refund.{kind}" for kind in ("requested", "ready", "sent", "undone", "sent")]
    assert kinds(till)[-5:] == told


def test_the_order_in_which_blocks_are_read_changes_nothing(till):
    """Three blocks at once: the newest is read first, and seems to have sent it."""
    refund = made(till, paid(till), to=address(1))
    first = send(till, refund, refund.amount_sats + 1)
    till.mine(2)
    sent(till, refund)
    assert status(till, refund) == ("sent", first)


def test_what_was_sent_twice_needs_attention_until_it_is_dismissed(till):
    invoice = paid(till)
    refund = made(till, invoice, to=address(1))
    sent(till, refund)
    assert reason_of(till, invoice) is None
    sent(till, refund)
    assert reason_of(till, invoice) == "refunded_twice"
    assert till.kinds(invoice)[-1] == "refund sent again"
    reorganise(till)
    assert reason_of(till, invoice) is None
    till.mine_and_check()
    assert reason_of(till, invoice) == "refunded_twice"
    Terminal(till).run("invoice", "dismiss", invoice["id"], "--reason", "they sent it back")
    assert reason_of(till, invoice) is None


@pytest.mark.parametrize("story", [late, too_much, after_cancellation, short])
def test_the_attention_that_it_answers_is_set_aside(till, story):
    invoice = story(till)
    assert reason_of(till, invoice)
    send(till, made(till, invoice, to=address(1)))
    till.check()
    assert reason_of(till, invoice)
    till.mine_and_check()
    assert reason_of(till, invoice) is None
    reorganise(till)
    assert reason_of(till, invoice)


def test_unsaid_it_is_what_is_left_of_too_much_and_then_of_all(till):
    invoice = too_much(till)
    came = invoice["amount_sats"] + 294
    with pytest.raises(Refused, match="nothing to send back"):
        made(till, invoice, 0)  # what is worth less than a satoshi does not stand for all
    assert made(till, invoice).amount_sats == 294
    rest = made(till, invoice)
    assert rest.amount_sats == came - 294
    with pytest.raises(Refused, match="nothing to send back"):
        made(till, invoice)
    acts.drop(till.shop.service.db, rest.id, acts.CANCELED, till.clock())
    assert made(till, invoice, 2 * came - 294).amount_sats == 2 * came - 294
    with pytest.raises(Refused, match="twice what came"):
        made(till, invoice, 1)


def test_an_invoice_without_money_has_no_refund(till):
    with pytest.raises(Refused, match="no confirmed payment"):
        made(till, till.shop.invoice())


def test_only_one_address_is_taken_until_the_merchant_clears_it(till):
    db, now, invoice = till.shop.service.db, till.clock(), paid(till)
    refund = made(till, invoice)
    give(till, refund, f"bitcoin:{address(1)}?amount=1")
    with pytest.raises(Refused, match="already"):
        give(till, refund, address(2))
    acts.drop(db, refund.id, acts.CLEARED, now)
    given = give(till, refund, address(2).upper())
    assert given.address == address(2)
    sent(till, given)
    for to in (acts.CLEARED, acts.CANCELED):
        with pytest.raises(Refused, match="sent"):
            acts.drop(db, refund.id, to, now)


def test_nobody_makes_a_refund_that_another_merchants_wallet_sends(till):
    """One output sends the oldest refund to its address, whoever paid."""
    shop, theirs = till.shop, till.shop.add_merchant("other")
    bait = shop.post("/invoices", {"amount_usd": 25}, shop.issue("write", theirs)).json
    till.confirm(bait)
    first = made(till, bait)
    owed = made(till, paid(till), to=address(1))
    with pytest.raises(Refused, match="another merchant's"):
        give(till, first, address(1))
    with pytest.raises(Refused, match="another merchant's"):
        made(till, bait, 1_000, address(1))
    sent(till, owed)
    assert (status(till, owed)[0], status(till, first)[0]) == ("sent", "requested")
    give(till, first, address(1))


def test_a_block_that_was_known_when_the_address_was_given_sends_nothing(till):
    refund = made(till, paid(till), 5_000)
    till.sandbox.wallet.pay(address(1), 5_000, till.now)
    till.mine_and_check()
    give(till, refund, address(1))
    till.mine_and_check()
    assert status(till, refund) == ("ready", None)


def test_an_idle_shop_reads_on_while_a_refund_waits(till):
    """Its coins have moved, its invoices ended long ago; then nothing else makes it read."""
    refund = made(till, paid(till), to=address(1))
    till.sandbox.wallet.pay(address(9), 1_000, till.now)
    till.shop.sql("UPDATE balance SET total_sats = 0, confirmed_sats = 0")
    till.clock.move(days=30)
    till.mine()
    txid = send(till, refund)
    till.mine()
    till.clock.move(days=30)
    till.mine_and_check()
    assert status(till, refund) == ("sent", txid)
    till.mine()
    till.clock.move(hours=5)
    till.mine_and_check()
    (row,) = till.shop.sql("SELECT COUNT(*) FROM block WHERE read_at = 0 AND height > 200")
    assert row[0] > 0  # nothing waits any more


def test_the_proof_is_checked_offline_by_the_command(till, tmp_path):
    terminal, invoice = Terminal(till), paid(till)
    create = ("refund", "create", invoice["id"], "--amount", "5", "--address", address(1))
    refund = terminal.json(*create)
    assert refund["amount_sats"] == 5 * 100_000_000 // 60_000
    _, errors = terminal.run("refund", "proof", refund["id"], status=1)
    assert "ready" in errors
    till.sandbox.wallet.pay(address(1), refund["amount_sats"], till.now)
    till.mine_and_check()
    (tmp_path / "proof").write_text(terminal.run("refund", "proof", refund["id"])[0])
    (shown,) = terminal.json("verify-proof", str(tmp_path / "proof"))
    found = terminal.json("refund", "show", refund["id"])
    assert (shown["txid"], shown["amount_sats"]) == (found["tx_hash"], refund["amount_sats"])
    assert found["status"] == "sent" and terminal.json("refund", "list") == [
        {name: found[name] for name in terminal.json("refund", "list")[0]}
    ]


def test_a_chain_that_is_begun_anew_sends_nothing_twice(till):
    refund, waiting = made(till, paid(till), to=address(1)), made(till, paid(till), to=address(2))
    txid, db = send(till, refund), till.shop.service.db
    till.mine_and_check()
    before = found(till, refund)
    begin_anew(db, till.settings, till.clock())
    assert status(till, refund) == ("sent", txid)
    till.begin().clock.move(days=1)
    till.shop.sql("UPDATE block SET read_at = NULL")  # among them the one that sent it
    later = sent(till, waiting)
    assert (status(till, refund), status(till, waiting)) == (("sent", txid), ("sent", later))
    assert found(till, refund).value_at_sending == before.value_at_sending
    assert "refund.undone" not in kinds(till)


@about_sqlite
def test_a_restored_shop_finds_what_was_sent_meanwhile(till, tmp_path):
    refund = made(till, paid(till), to=address(1))
    url = empty_database(tmp_path / "restored")
    backup = backed_up(till, tmp_path / "backup")
    txid = send(till, refund)
    till.mine(3)
    Terminal(till).run("restore", str(backup), "--yes", BTCPAY_DATABASE_URL=url)
    with on(url, till) as restored:
        restored.check()
        assert status(restored, refund) == ("sent", txid)
