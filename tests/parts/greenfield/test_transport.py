"""Webhooks in Greenfield's words: what each event is called, signed, in order, never overtaken."""

import pytest

from btcpay.notify import receivers
from btcpay.notify.kinds import EventKind
from btcpay.parts.greenfield import transport
from btcpay.parts.greenfield.transport import signature
from btcpay.sandbox.payer.wallet import double_spends
from btcpay.values.errors import CommandError
from btcpay.values.times import to_ms
from storage.models import Delivery
from storage.queries import deliveries, invoices
from storage.queries import receivers as stored
from storage.statement import as_dict
from tests.support.fake_esplora import Terminal, say
from tests.support.plug_in import GreenfieldShop
from tests.support.shop_events import deliver

SEEN = EventKind.INVOICE_PAYMENT_SEEN
RECEIVED = EventKind.PAYMENT_RECEIVED


def state(status="open", missing=0, first=False):
    return {"status": status, "missing_sats": missing, "is_first_seen": first}


WEBHOOKS = "/stores/STORE/webhooks"


@pytest.mark.parametrize(
    ("kind", "stored", "types"),
    [
        (EventKind.INVOICE_CREATED, {}, ["InvoiceCreated"]),
        (SEEN, state(missing=1), ["InvoiceReceivedPayment"]),
        (SEEN, state(), ["InvoiceReceivedPayment", "InvoiceProcessing"]),
        (SEEN, state("paid"), ["InvoiceReceivedPayment"]),
        (SEEN, state("expired", 1), ["InvoiceReceivedPayment"]),
        (RECEIVED, state(missing=1), ["InvoicePaymentSettled"]),
        (
            RECEIVED,
            state("paid", first=True),
            ["InvoiceReceivedPayment", "InvoicePaymentSettled"],
        ),
        (EventKind.INVOICE_PAID, state("paid"), ["InvoiceSettled"]),
        (EventKind.INVOICE_EXPIRED, state("expired"), ["InvoiceExpired"]),
        (EventKind.INVOICE_CANCELED, state("canceled"), ["InvoiceInvalid"]),
        (EventKind.INVOICE_REOPENED, state(), ["InvoiceInvalid"]),
        (EventKind.PAYMENT_UNDONE, state(), []),
        (EventKind.INVOICE_ATTENTION, state("paid"), []),
        (EventKind.PAYMENT_LINK_CREATED, {}, []),
    ],
)
def test_each_event_has_its_webhooks(kind, stored, types):
    assert [name for name, _ in transport.webhooks_of(kind, stored, {})] == types


def test_the_signature_is_that_of_rfc_4231s_second_case():
    known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert signature("Jefe", b"what do ya want for nothing?") == f"sha256={known}"


@pytest.fixture
def till(open_tills):
    return open_tills(BLOCKTILL_GREENFIELD="on")


@pytest.fixture
def store(till, receiver):
    return GreenfieldShop(till.shop, url=receiver.url)


def order(till, store, **fields):
    made = store.order(metadata={"orderId": "27"}, **fields)
    return as_dict(till.shop.service.db.get(invoices.WHOLE, id=made["id"]))


def listen(store, url, *types, **more):
    events = {"everything": not types, "specificEvents": types}
    response = store.ask(
        "POST", WEBHOOKS, {"url": url, "authorizedEvents": events} | more
    )
    assert response.status_code == 200, response.text
    return response.json


def of(receiver, invoice):
    found = [one.json for one in receiver.messages]
    return [one["type"] for one in found if one["invoiceId"] == invoice["id"]]


WHOLE = transport.WEBHOOKS.split()[:5]


@pytest.mark.both_databases
def test_a_shop_is_told_of_its_own_orders_in_order_and_of_nothing_else(
    till, store, receiver
):
    added = listen(store, receiver.url)
    till.shop.invoice()
    invoice = order(till, store)
    till.pay(invoice)
    till.look_for(invoice)
    till.mine_and_check()
    assert deliver(till) == (5, 0)
    assert receiver.kinds == WHOLE == of(receiver, invoice)
    first, *_, last = receiver.messages
    for message in receiver.messages:
        assert message.headers["btcpay-sig"] == signature(added["secret"], message.body)
    assert len({one.json["deliveryId"] for one in receiver.messages}) == 5
    assert last.json | {"timestamp": 0, "deliveryId": "", "originalDeliveryId": ""} == {
        "deliveryId": "",
        "originalDeliveryId": "",
        "isRedelivery": False,
        "webhookId": added["id"],
        "type": "InvoiceSettled",
        "timestamp": 0,
        "storeId": store.store,
        "invoiceId": invoice["id"],
        "metadata": {"orderId": "27"},
        "overPaid": False,
        "manuallyMarked": False,
    }
    assert deliver(till) == (0, 0)


@pytest.mark.both_databases
def test_a_waiting_event_is_listed_with_the_id_of_the_earlier_event(
    till, store, receiver
):
    """A delivery's own name is longer: it ends with the name of Greenfield's webhook."""
    added = listen(store, receiver.url)
    invoice = order(till, store)
    Terminal(till).run("invoice", "cancel", invoice["id"])
    later, first = Terminal(till).json("webhook", "deliveries", added["id"])
    assert [later["waits_for"], first["waits_for"]] == [first["event_id"], None]


@pytest.mark.both_databases
def test_after_a_dead_hour_all_comes_in_order_with_the_same_ids(till, store, receiver):
    """Of the order that was first tried too, whose next attempt was due long after the others."""
    listen(store, receiver.url)
    receiver.instead = lambda _: say(b"down", 503)
    one = order(till, store)
    other = order(till, store)
    for invoice in (one, other):
        till.pay(invoice)
        till.look_for(invoice)
        deliver(till)
        till.clock.move(minutes=20)
    till.mine_and_check()
    deliver(till)
    till.clock.move(minutes=20)
    tried = {message.json["originalDeliveryId"] for message in receiver.messages}
    assert set(receiver.kinds) == {"InvoiceCreated"}
    receiver.messages.clear()
    receiver.instead = lambda _: say(b"", 200)
    assert deliver(till) == (10, 0)
    assert of(receiver, one) == of(receiver, other) == WHOLE
    for message in receiver.messages:
        was_tried = message.json["originalDeliveryId"] in tried
        assert message.json["isRedelivery"] == was_tried, message.json
        assert (
            message.json["deliveryId"] != message.json["originalDeliveryId"]
        ) == was_tried


@pytest.mark.both_databases
def test_a_webhook_that_is_refused_holds_its_own_order_alone(till, store, receiver):
    """On hold would come after paid: the order would wait for ever."""
    listen(store, receiver.url)
    one = order(till, store)
    other = order(till, store)
    till.pay(one), till.pay(other)
    till.look_for(one, other)
    till.mine_and_check()
    refused = (one["id"], "InvoiceProcessing")
    receiver.instead = lambda message: say(
        b"",
        500 if (message.json["invoiceId"], message.json["type"]) == refused else 200,
    )
    deliver(till), deliver(till)
    assert of(receiver, one) == WHOLE[:3] and of(receiver, other) == WHOLE
    refused = None
    till.clock.move(minutes=30)
    deliver(till)
    assert of(receiver, one) == [*WHOLE[:3], *WHOLE[2:]]


@pytest.mark.both_databases
def test_what_one_process_sends_no_other_sends_for_a_minute(till, store, receiver):
    added = listen(store, receiver.url)
    order(till, store)
    db = till.shop.service.db
    now = to_ms(till.clock())
    (row,) = db.rows(deliveries.DUE, receiver_id=added["id"], until=now, limit=9)
    key = {name: getattr(row, name) for name in ("receiver_id", "about", "attempts")}
    hold = [
        db.run(deliveries.HOLD, **key, now=now, until=now + 60_000) for _ in range(2)
    ]
    assert hold == [1, 0]
    assert deliver(till) == (0, 0) and receiver.messages == []
    till.clock.move(seconds=61)
    assert deliver(till) == (1, 0)


@pytest.mark.both_databases
def test_a_shop_that_is_down_is_tried_again_at_once_and_a_slow_one_when_that_is_surely_over(
    till, receiver, released
):
    receiver.instead = lambda _: released.wait() and say(b"", 200)
    for url, timeout_s, tried in (
        ("http://127.0.0.1:9/", 60, 1),
        (receiver.url, 0.3, 0),
    ):
        store = GreenfieldShop(till.shop, url=url)
        added = listen(store, url)
        order(till, store)
        assert deliver(till, timeout_s) == (0, 1)
        till.clock.move(seconds=6)
        assert deliver(till) == (0, tried)
        store.ask("DELETE", f"{WEBHOOKS}/{added['id']}")


def test_late_short_by_hand_and_taken_back_are_said_in_flags(till, store, receiver):
    listen(store, receiver.url, *transport.WEBHOOKS.split()[1:])
    late = order(till, store, checkout={"expirationMinutes": 60})
    short = order(till, store, checkout={"expirationMinutes": 60})
    till.pay(short, 10_000)
    till.look_for(short)
    till.clock.move(hours=2)
    till.mine_and_check()
    till.confirm(late)
    Terminal(till).run("invoice", "settle", late["id"], "--reason", "good enough")
    canceled = order(till, store)
    Terminal(till).run("invoice", "cancel", canceled["id"])
    much = order(till, store)
    till.confirm(much, much["amount_sats"] * 2)
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    deliver(till)

    def said(invoice, flag):
        found = [
            one.json
            for one in receiver.messages
            if one.json["invoiceId"] == invoice["id"]
        ]
        return [(one["type"], one[flag]) for one in found if flag in one]

    assert said(late, "afterExpiration") == [
        ("InvoiceReceivedPayment", True),
        ("InvoicePaymentSettled", True),
    ]
    assert said(late, "manuallyMarked") == [("InvoiceSettled", True)]
    assert said(short, "partiallyPaid") == [("InvoiceExpired", True)]
    assert said(late, "partiallyPaid") == [("InvoiceExpired", False)]
    assert said(canceled, "manuallyMarked") == [("InvoiceInvalid", True)]
    assert said(much, "overPaid")[-1] == ("InvoiceSettled", True)
    assert said(much, "manuallyMarked")[-1] == ("InvoiceInvalid", False)


@pytest.mark.both_databases
def test_the_same_url_again_keeps_what_waits_and_takes_the_new_secret(
    till, store, receiver
):
    first = listen(store, receiver.url)
    order(till, store)
    receiver.instead = lambda _: say(b"", 500)
    assert deliver(till) == (0, 1)
    again = listen(store, receiver.url, secret="chosen")
    assert (again["id"], again["secret"]) == (first["id"], "chosen")
    row = till.shop.service.db.get(stored.BY_ID, id=first["id"])
    assert row.failing_since is row.failed_ms is None  # what is saved anew begins anew
    receiver.instead = lambda _: say(b"", 200)
    till.clock.move(minutes=1)
    assert deliver(till) == (1, 0)
    _, message = receiver.messages
    assert message.headers["btcpay-sig"] == signature("chosen", message.body)


def test_what_was_given_up_is_sent_again_unless_it_was_overtaken(till, store, receiver):
    db = till.shop.service.db
    added = listen(store, receiver.url)
    for invoice in (order(till, store), order(till, store)):
        till.confirm(invoice)
    give_up = Delivery.update({Delivery.next_ms: None})
    db.run(give_up.where(Delivery.about.endswith("Created")))
    spoiled = db.get(Delivery.select(Delivery.line).limit(1)).line
    db.run(give_up.where(Delivery.line == spoiled))
    assert deliver(till) == (3, 0)
    assert receivers.resend_failed(db, added["id"], till.clock()) == 4
    with pytest.raises(CommandError, match="plug-in"):
        receivers.rotate(db, added["id"], till.clock())
    assert deliver(till) == (4, 0)
    assert of(receiver, {"id": spoiled})[0] == "InvoiceCreated"
