"""A refund from its making to the block that sends it, and back: on a chain, by the commands."""

import json

import pytest

from btcpay.check.undo import begin_anew
from btcpay.parts.refunds import actions, manual, steps
from btcpay.parts.refunds.models import RefundOutput
from btcpay.proofs.document import check_document
from btcpay.sandbox.payer.wallet import double_spends
from btcpay.values.errors import ChangeRefused
from storage.statement import blank
from tests.support.attention_cases import (
    after_cancellation,
    late,
    reason_of,
    short,
    too_much,
)
from tests.support.databases import about_sqlite, empty_database
from tests.support.fake_esplora import Terminal
from tests.support.other_database import backed_up, on
from tests.support.shop_events import kinds
from tests.support.shop_refunds import address, found, give, made, paid, send, sent

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
    told = [
        f"refund.{kind}" for kind in ("requested", "ready", "sent", "undone", "sent")
    ]
    assert kinds(till)[-5:] == told


def test_a_newer_block_that_is_read_first_changes_nothing(till):
    """Three blocks at once: the newest is read first, and seems to have sent it."""
    refund = made(till, paid(till), to=address(1))
    first = send(till, refund)
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
    Terminal(till).run(
        "invoice", "dismiss", invoice["id"], "--reason", "they sent it back"
    )
    assert reason_of(till, invoice) is None


def test_other_money_to_the_address_sends_nothing_and_is_asked_about(till):
    """A miner's reward, a tip, what another wallet paid less a fee: none is the refund."""
    terminal = Terminal(till)
    invoice = paid(till)
    refund = made(till, invoice, 10_000, address(1))
    for sats in (2_500_000_000, 9_700, 10_001):
        send(till, refund, sats)
        till.mine_and_check()
    assert status(till, refund) == ("ready", None)
    shown = terminal.json("refund", "sent", refund.id)
    assert [one["amount_sats"] for one in shown] == [10_001, 9_700, 2_500_000_000]
    txid = sent(till, refund)
    assert status(till, refund) == ("sent", txid)
    assert reason_of(till, invoice) is None
    assert terminal.json("refund", "sent", refund.id) == []


def test_an_output_of_another_sum_sends_the_refund_once_the_merchant_says_so(till):
    terminal = Terminal(till)
    invoice = paid(till)
    refund = made(till, invoice, 10_000, address(1))
    txid = send(till, refund, 9_700)
    till.mine_and_check()
    (shown,) = terminal.json("refund", "sent", refund.id)
    assert shown["txid"] == txid
    output = f"{txid}:{shown['vout']}"
    for _ in range(2):  # a second press is the first
        said = terminal.json("refund", "sent", refund.id, output)
    assert (said["status"], said["tx_hash"], said["amount_sats"]) == (
        "sent",
        txid,
        10_000,
    )
    row = found(till, refund)
    assert (row.sent_sats, row.value_at_sending) == (9_700, "5.82")
    assert till.kinds(invoice).count("refund sent") == 1
    till.mine_and_check(3)
    assert status(till, refund) == ("sent", txid)
    till.sandbox.chain.reorganise(4, till.now)
    till.check()
    assert status(till, refund) == ("ready", None)
    till.mine_and_check()
    assert status(till, refund) == (
        "sent",
        txid,
    )  # the same transaction: his word holds
    proof = json.loads(terminal.run("refund", "proof", refund.id)[0])
    assert check_document(proof).amounts_sats[shown["vout"]] == 9_700


def test_what_the_merchant_has_named_may_be_spent_otherwise_and_sent_anew(till):
    refund = made(till, paid(till), 10_000, address(1))
    send(till, refund, 9_700)
    till.mine_and_check()
    (output,) = manual.candidates(till.shop.service.db, refund)
    say_it_was(till, refund, output)
    instead = double_spends(till.sandbox.wallet, 1)
    till.sandbox.chain.reorganise(1, till.now, instead)
    till.check()
    assert status(till, refund) == ("ready", None)
    assert manual.candidates(till.shop.service.db, found(till, refund)) == []
    txid = sent(till, refund)
    assert status(till, refund) == ("sent", txid)


def say_it_was(till, refund, output):
    outpoint = manual.Outpoint(output.txid, output.vout)
    db = till.shop.service.db
    return manual.confirm_sent(db, till.settings, refund.id, outpoint, till.clock())


def test_one_output_is_one_refund_whatever_the_merchant_says(till):
    db = till.shop.service.db
    first = made(till, paid(till), 10_000, address(1))
    second = made(till, paid(till), 20_000, address(1))
    send(till, first)
    send(till, first, 9_700)
    till.mine_and_check()
    (other,) = manual.candidates(db, second)
    (exact,) = till.shop.sql(
        "SELECT txid, vout FROM refund_output WHERE amount_sats = 10000"
    ).fetchall()
    with pytest.raises(ChangeRefused, match="no block has"):
        say_it_was(till, second, blank(RefundOutput, txid=exact[0], vout=exact[1]))
    with pytest.raises(ChangeRefused, match="no block has"):
        say_it_was(till, second, blank(RefundOutput, txid="0" * 64, vout=0))
    assert say_it_was(till, second, other).status == "sent"
    with pytest.raises(ChangeRefused, match="is sent"):
        say_it_was(till, first, other)


@pytest.mark.parametrize(
    "text", ["", "x", "0" * 64, "0" * 64 + ":", "0" * 63 + ":0", ":" * 99]
)
def test_what_is_no_output_is_refused(till, text):
    with pytest.raises(ChangeRefused, match="TXID:VOUT"):
        manual.read_outpoint(text)


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


def test_unsaid_it_is_the_excess_and_never_the_price_afterwards(till):
    invoice = too_much(till)
    came = invoice["amount_sats"] + 294
    with pytest.raises(ChangeRefused, match="nothing to send back"):
        # what is worth less than a satoshi does not stand for all
        made(till, invoice, 0)
    excess = made(till, invoice)
    assert excess.amount_sats == 294
    with pytest.raises(ChangeRefused, match="nothing to send back"):
        made(till, invoice)
    actions.drop(till.shop.service.db, excess.id, steps.CANCELED, till.clock())
    assert made(till, invoice, 200).amount_sats == 200
    assert made(till, invoice).amount_sats == 94
    made(till, invoice, 2 * came - 294)
    with pytest.raises(ChangeRefused, match="twice what came"):
        made(till, invoice, 1)


def test_unsaid_and_without_an_excess_it_is_all_that_came_once(till):
    invoice = paid(till)
    assert made(till, invoice, 1_000).amount_sats == 1_000
    assert made(till, invoice).amount_sats == invoice["amount_sats"] - 1_000
    with pytest.raises(ChangeRefused, match="nothing to send back"):
        made(till, invoice)


def test_unsaid_it_means_what_it_meant_the_first_time_though_the_excess_leaves_the_chain(
    till,
):
    """The payment of the excess is spent otherwise; a canceled refund has fixed it as well."""
    invoice = paid(till)
    till.confirm(invoice, 5_000)
    excess = made(till, invoice)
    assert excess.amount_sats == 5_000
    actions.drop(till.shop.service.db, excess.id, steps.CANCELED, till.clock())
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    with pytest.raises(ChangeRefused, match="nothing to send back"):
        made(till, invoice)
    till.confirm(invoice, 3_000)
    assert made(till, invoice).amount_sats == 3_000


def test_unsaid_and_first_of_all_that_came_it_stays_so_though_an_excess_comes(till):
    invoice = paid(till)
    made(till, invoice)
    till.confirm(invoice, 5_000)
    assert made(till, invoice).amount_sats == 5_000


def test_what_was_sent_twice_goes_back_once_more_only_by_a_sum_that_is_said(till):
    invoice = paid(till)
    terminal = Terminal(till)
    refund = made(till, invoice, 1_000, to=address(1))
    sent(till, refund)
    sent(till, refund)
    assert reason_of(till, invoice) == "refunded_twice"
    _, errors = terminal.run("refund", "create", invoice["id"], status=1)
    assert "sent twice" in errors
    assert made(till, invoice, 1_000).amount_sats == 1_000


def test_the_command_says_the_sum_and_a_second_time_that_nothing_is_left(till):
    invoice = too_much(till)
    terminal = Terminal(till)
    out, _ = terminal.run("refund", "create", invoice["id"])
    assert out.splitlines()[2] == "0.00000294 BTC (294 sat)"
    _, errors = terminal.run("refund", "create", invoice["id"], status=1)
    assert "nothing to send back: say how much" in errors


def test_an_invoice_without_money_has_no_refund(till):
    with pytest.raises(ChangeRefused, match="no confirmed payment"):
        made(till, till.shop.invoice())


def test_only_one_address_is_taken_until_the_merchant_clears_it(till):
    db = till.shop.service.db
    now = till.clock()
    invoice = paid(till)
    refund = made(till, invoice)
    give(till, refund, f"bitcoin:{address(1)}?amount=1")
    with pytest.raises(ChangeRefused, match="already"):
        give(till, refund, address(2))
    actions.drop(db, refund.id, steps.CLEARED, now)
    given = give(till, refund, address(2).upper())
    assert given.address == address(2)
    sent(till, given)
    for to in (steps.CLEARED, steps.CANCELED):
        with pytest.raises(ChangeRefused, match="sent"):
            actions.drop(db, refund.id, to, now)


def test_nobody_makes_a_refund_that_another_merchants_wallet_sends(till):
    """One output sends the oldest refund to its address, whoever paid."""
    shop = till.shop
    theirs = till.shop.add_merchant("other")
    bait = shop.post("/invoices", {"amount_usd": 25}, shop.issue("write", theirs)).json
    till.confirm(bait)
    first = made(till, bait)
    owed = made(till, paid(till), to=address(1))
    with pytest.raises(ChangeRefused, match="another merchant's"):
        give(till, first, address(1))
    with pytest.raises(ChangeRefused, match="another merchant's"):
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
    (row,) = till.shop.sql(
        "SELECT COUNT(*) FROM block WHERE read_ms = 0 AND height > 200"
    )
    assert row[0] > 0  # nothing waits any more


def test_the_proof_is_checked_offline_by_the_command(till, tmp_path):
    terminal = Terminal(till)
    invoice = paid(till)
    create = (
        "refund",
        "create",
        invoice["id"],
        "--amount",
        "5",
        "--address",
        address(1),
    )
    refund = terminal.json(*create)
    assert refund["amount_sats"] == 5 * 100_000_000 // 60_000
    _, errors = terminal.run("refund", "proof", refund["id"], status=1)
    assert "ready" in errors
    till.sandbox.wallet.pay(address(1), refund["amount_sats"], till.now)
    till.mine_and_check()
    (tmp_path / "proof").write_text(terminal.run("refund", "proof", refund["id"])[0])
    (shown,) = terminal.json("verify-proof", str(tmp_path / "proof"))
    found = terminal.json("refund", "show", refund["id"])
    assert (shown["txid"], shown["amount_sats"]) == (
        found["tx_hash"],
        refund["amount_sats"],
    )
    assert found["status"] == "sent" and terminal.json("refund", "list") == [
        {name: found[name] for name in terminal.json("refund", "list")[0]}
    ]


def test_a_chain_that_is_begun_anew_sends_nothing_twice(till):
    refund = made(till, paid(till), to=address(1))
    waiting = made(till, paid(till), to=address(2))
    txid = send(till, refund)
    db = till.shop.service.db
    till.mine_and_check()
    before = found(till, refund)
    begin_anew(db, till.settings, till.clock())
    assert status(till, refund) == ("sent", txid)
    till.begin().clock.move(days=1)
    till.shop.sql("UPDATE block SET read_ms = NULL")  # among them the one that sent it
    later = sent(till, waiting)
    assert (status(till, refund), status(till, waiting)) == (
        ("sent", txid),
        ("sent", later),
    )
    assert found(till, refund).value_at_sending == before.value_at_sending
    assert "refund.undone" not in kinds(till)


@about_sqlite
def test_a_restored_shop_finds_what_was_sent_meanwhile(till, tmp_path):
    refund = made(till, paid(till), to=address(1))
    url = empty_database(tmp_path / "restored")
    backup = backed_up(till, tmp_path / "backup")
    txid = send(till, refund)
    till.mine(3)
    Terminal(till).run("restore", str(backup), "--yes", BLOCKTILL_DATABASE_URL=url)
    with on(url, till) as restored:
        restored.check()
        assert status(restored, refund) == ("sent", txid)
