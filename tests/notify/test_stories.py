"""The events of an invoice's life: each once, in order, as things were when it happened."""

import json

import pytest

from btcpay.sandbox.payer.wallet import replace
from tests.support.attention_cases import after_cancellation, late, reorganised
from tests.support.fake_esplora import Terminal
from tests.support.shop_events import events, kinds


@pytest.fixture
def till(open_tills):
    return open_tills(BLOCKTILL_CONFIRMATIONS="1 3@1000")


def in_two_parts(till):
    invoice = till.shop.invoice()
    till.confirm(invoice, 10_000)
    till.confirm(invoice, invoice["amount_sats"] - 10_000)


def by_two_outputs(till):
    invoice = till.shop.invoice()
    till.pay_outputs((invoice, 10_000), (invoice, invoice["amount_sats"] - 10_000))
    till.look_for(invoice)
    till.mine_and_check()


def deep(till):
    invoice = till.shop.invoice(1500)
    till.pay(invoice)
    till.look_for(invoice)
    for _ in range(3):
        till.mine_and_check()
        till.check()


def accepted(till):
    Terminal(till).run("invoice", "settle", late(till)["id"], "--reason", "good enough")


def dismissed(till):
    id = after_cancellation(till)["id"]
    Terminal(till).run("invoice", "dismiss", id, "--reason", "sent back")


def replaced(till):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.look_for(invoice), till.look_for(invoice)
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for(invoice), till.look_for(invoice)


def replaced_for_good(till):
    """A part that has vanished too is no reason for a human."""
    whole, part = (till.shop.invoice(expires_in_hours=1) for _ in range(2))
    txids = [till.pay(whole), till.pay(part, 10_000)]
    till.look_for(whole), till.look_for(part)
    for txid in txids:
        replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for(whole, part)
    till.clock.move(hours=2)
    till.check(), till.check()


def taken_back_and_paid_again(till):
    till.confirm(till.shop.invoice())
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    till.mine_and_check()


def a_link(till):
    link = till.shop.link(title="Tip jar")
    for word in ("deactivate", "deactivate", "activate", "activate", "deactivate"):
        Terminal(till).run("link", word, link["id"])


CREATED = "invoice.created"
SEEN = "invoice.payment_seen"
PAID = "invoice.paid"
VANISHED = "invoice.payment_vanished"
EXPIRED = "invoice.expired"
RECEIVED = "payment.received"
ATTENTION = "invoice.attention"
UNDONE = ["payment.undone", "invoice.reopened", ATTENTION]
STORIES = {
    "a part and the rest": (in_two_parts, [CREATED, RECEIVED, RECEIVED, PAID]),
    "two outputs of one transaction": (by_two_outputs, [CREATED, SEEN, RECEIVED, PAID]),
    "three confirmations": (deep, [CREATED, SEEN, RECEIVED, PAID]),
    "too late, and accepted": (accepted, [CREATED, "invoice.expired", RECEIVED, ATTENTION, PAID]),
    "after it was canceled": (dismissed, [CREATED, "invoice.canceled", RECEIVED,
        ATTENTION]),
    "replaced": (replaced, [CREATED, SEEN, VANISHED]),
    "replaced, and its time is up": (replaced_for_good, [CREATED, CREATED, SEEN, SEEN, VANISHED,
        VANISHED, EXPIRED, ATTENTION, EXPIRED]),
    "in a block that was lost, then in another": (taken_back_and_paid_again, [CREATED, RECEIVED,
        PAID, *UNDONE, RECEIVED, PAID]),
    "in a block that was lost for good": (reorganised, [CREATED, RECEIVED, PAID, *UNDONE,
        "invoice.payment_vanished"]),
    "a link that is turned off twice": (a_link, ["payment_link.created",
        "payment_link.deactivated", "payment_link.deactivated"]),
}  # fmt: skip


def sent(event):
    """The data as a receiver reads it."""
    return json.loads(event.body)["data"]


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_everything_is_told_once(till, story):
    live, expected = story
    live(till)
    till.check()
    assert kinds(till) == expected


def test_an_event_shows_what_was_true_then(till):
    invoice = till.shop.invoice(1500, customer_email="ada@example.com")
    till.pay(invoice)
    till.look_for(invoice)
    till.mine_and_check(3)
    amount = invoice["amount_sats"]
    created, seen, received, paid = (sent(event) for event in events(till))
    for data, came in ((created, (0, 0, amount)), (seen, (amount, amount, 0))):
        assert data["invoice"] == invoice
        assert (
            data["received_sats"],
            data["unconfirmed_sats"],
            data["missing_sats"],
        ) == came
    (payment,) = till.payments(invoice)
    assert received["payment"] == payment
    assert paid["invoice"] == received["invoice"] == till.look(invoice)
    assert (paid["received_sats"], paid["unconfirmed_sats"]) == (amount, 0)


def test_a_payment_that_was_undone_is_told_as_it_was(till):
    reorganised(till)
    by_kind = {event.kind: sent(event) for event in events(till)}
    undone = by_kind["payment.undone"]
    received = by_kind["payment.received"]
    assert undone["payment"] == received["payment"]
    assert undone["payment"]["invoice_id"] == undone["invoice"]["id"]
    assert (undone["invoice"]["status"], undone["attention"]) == ("open", "reorganised")
    assert till.payments() == []


def test_what_was_erased_of_the_customer_is_told_to_nobody(till):
    invoice = till.shop.invoice(customer_email="ada@example.com", expires_in_hours=1)
    assert events(till)[0].data["invoice"]["customer_email"] == "ada@example.com"
    till.clock.move(hours=2)
    till.check()
    till.clock.move(days=2)
    checker = till.checker(email_retention_days=1)
    checker.finish(checker.run())
    assert [event.data["invoice"]["customer_email"] for event in events(till)] == [
        None,
        None,
    ]
    assert till.look(invoice)["customer_email"] is None
