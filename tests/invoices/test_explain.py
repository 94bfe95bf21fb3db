"""`blocktill invoice show`: reads like an explanation, and says when the next look is."""

import pytest

from btcpay.check.mempool import next_look
from btcpay.invoices.explain import explanation
from btcpay.invoices.status import find_story
from tests.support.fake_esplora import Terminal


@pytest.fixture
def till(open_tills):
    return open_tills(BLOCKTILL_CONFIRMATIONS="1 3@1000")


def explained(till, invoice):
    """The sentences below each heading."""
    shop = (till.shop.service.db, till.settings)
    now = till.clock()
    story = find_story(*shop, invoice["id"], now)
    found: dict[str, list[str]] = {}
    heading = ""
    for name, sentence in explanation(story, next_look(*shop, story.row, now)):
        heading = name or heading
        found.setdefault(heading, []).append(sentence)
    return found


def test_a_new_invoice_says_what_is_asked_for_and_that_nothing_was_seen(till):
    invoice = till.shop.invoice(description="tea", expires_in_hours=2)
    said = explained(till, invoice)
    assert said["invoice"] == [f"{invoice['id']}, open"]
    assert said["asked for"] == [
        "41667 satoshis (0.00041667 BTC), which were 25.00 USD at 60,000.00 USD a bitcoin",
        f"to be paid before {invoice['expires_at']}",
        "tea",
    ]
    assert said["address"] == [f"{invoice['deposit_address']}, number 0 of the account"]
    nothing = "0 satoshis that count, 0 of them unconfirmed; 0 of 1 confirmation"
    assert said["seen"] == [nothing]
    assert said["missing"] == ["41667 satoshis"]
    assert said["why"] == ["open: nothing has been seen at the address"]
    assert said["checked"] == ["never"]
    assert said["mempool"] == ["when somebody opens its page, or its deadline is near"]
    assert said["history"] == [f"made {invoice['created_at']}"]


def test_a_part_says_what_is_missing_and_who_showed_it_and_a_block_that_is_lost_that_it_is(
    till,
):
    invoice = till.shop.invoice()
    txid = till.pay(invoice, 1_000)
    till.mine_and_check()
    said = explained(till, invoice)
    (payment,) = till.payments()
    assert said["seen"][0] == "1000 satoshis that count, 0 of them unconfirmed;" + (
        " 1 of 1 confirmation"
    )
    assert f"1000 satoshis by {txid}:0" in said["seen"][1]
    assert said["seen"][1].endswith(f"in block 201, counted as {payment['id']}")
    assert said["missing"] == ["40667 satoshis"]
    seen, counted = said["history"][1:]
    assert " seen: 1000 satoshis" in seen and seen.endswith("by 127.0.0.1")
    assert " payment: 1000 satoshis" in counted and "block 201" in counted
    assert till.confirm(invoice).new_statuses == {invoice["id"]: "paid"}
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    line = next(
        one for one in explained(till, invoice)["history"] if " reorganised: " in one
    )
    assert "block 202 " in line and "the invoice is open again" in line


def test_money_on_its_way_says_what_it_waits_for_and_no_more_confirmations_than_that(
    till,
):
    one = till.shop.invoice()
    three = till.shop.invoice(5_000)
    till.pay(one), till.pay(three)
    till.look_for(one, three)
    said = explained(till, one)
    assert said["seen"][1].endswith("waits in the mempool, pays 2.0 sat/vB")
    assert said["why"][0].endswith("0 of 41667 satoshis have 1 confirmation")
    assert explained(till, three)["why"][0].endswith("satoshis have 3 confirmations")
    new = till.shop.invoice(5_000)
    assert explained(till, new)["seen"][0].endswith("; 0 of 3 confirmations")
    for confirmed in (1, 3):
        till.mine(confirmed)
        till.check()
        assert explained(till, one)["mempool"] == ["not until more money comes"]
        assert explained(till, one)["seen"][0].endswith("; 1 of 1 confirmation")
        assert explained(till, three)["seen"][0].endswith(
            f"; {confirmed} of 3 confirmations"
        )


def test_a_vanished_payment_is_said_to_be_gone(till):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.look_for(invoice)
    till.sandbox.chain.mempool.remove({txid})
    till.look_for(invoice)
    said = explained(till, invoice)
    assert "gone since" in said["seen"][1] and " vanished: " in said["history"][-1]
    assert said["why"] == ["open: what was seen has vanished"]


@pytest.mark.parametrize("word", ["paid", "expired", "canceled"])
def test_the_history_says_each_end_once_and_only_a_block_tells_more(till, word):
    invoice = till.shop.invoice(expires_in_hours=1)
    if word == "paid":
        till.pay(invoice)
        till.mine()
    elif word == "expired":
        till.clock.move(hours=2)
    else:
        Terminal(till).run("invoice", "cancel", invoice["id"])
    till.check()
    last = explained(till, invoice)["history"][-1]
    assert f" {word}: " in last and f"{word}: {word}" not in last, last


def test_a_look_that_is_not_due_yet_says_when_it_is(open_tills, clock):
    """An explorer of others is asked less often, and a page that is open is not forgotten."""
    budget = {"BLOCKTILL_EXPLORER_CALLS_PER_HOUR": "600"}
    till = open_tills(**budget)
    invoice = till.shop.invoice()
    paid = till.shop.invoice()
    till.open_page(invoice)
    till.pay(paid)
    till.look_for(invoice, paid)
    page = "somebody is looking at its page"
    assert explained(till, invoice)["mempool"] == [f"in 1 min: {page}"]
    assert explained(till, paid)["mempool"] == ["in 10 min: money is on its way"]
    till.clock.move(minutes=1)
    assert explained(till, invoice)["mempool"] == [f"the next check: {page}"]
