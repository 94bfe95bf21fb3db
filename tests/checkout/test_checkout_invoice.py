"""The page of an invoice: its states in their own words, and what it asks a wallet to pay."""

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from btcpay.chain.follow import add_header
from btcpay.check.apply import apply
from btcpay.checkout.invoice_page import invoice_values
from btcpay.checkout.notices import Notices
from btcpay.checkout.snapshot import Snapshot, snapshot_of
from btcpay.languages import formats
from btcpay.settlement.values import Block, Scan, SeenOutput
from btcpay.values.money import btc_text, full_btc_text
from btcpay.web.pages import qr
from btcpay.web.pages.qr import qr_svg
from storage.queries import attentions, invoices, links, merchants
from storage.statement import replace
from tests.support.accounts import ACCOUNTS
from tests.support.builders import finish, pay, vanish
from tests.support.payer import Page, made, press

STATUS_FIELDS = (
    "amount_sats checked_at confirmations confirmations_needed expires_at missing_sats now"
    " received_sats returned_sats status unconfirmed_sats"
)


def show(shop, invoice, query=""):
    response = shop.client.get(f"/pay/{invoice['id']}{query}")
    assert response.status_code == 200
    return Page(response.text)


def test_a_waiting_invoice_shows_amount_address_qr_and_link(shop):
    invoice = shop.invoice(25, description="Two bags of coffee")
    page = show(shop, invoice, "?lang=en")
    address = invoice["deposit_address"]
    assert (page.state, page.texts["state"]) == ("waiting", "Waiting for your payment")
    assert page.texts["amount-btc"] == full_btc_text(invoice["amount_sats"])
    assert page.texts["amount-sats"] == "41,667 satoshis"
    assert page.texts["amount"] == "$25.00"
    assert page.texts["description"] == "Two bags of coffee"
    assert page.uri.startswith(f"bitcoin:{address}?amount=0.00041667&")
    assert page.texts["address"] == "".join(formats.groups(address)) == address
    assert re.search(r"<span>bcrt</span><wbr><span>1q..</span><wbr>", page.source)
    assert "<svg" in page.source.partition('id="qr"')[2]
    assert page.attributes["copy-address"]["data-copy"] == address
    assert page.attributes["copy-amount"]["data-copy"] == page.texts["amount-btc"]
    assert page.attributes["copy-link"]["data-copy-href"] == "open-wallet"
    assert (
        "pay-by" not in page.texts and "countdown" not in page.texts
    )  # without expiry
    assert (
        "not been checked" in page.texts["checked"]
        and "hidden" in page.attributes["long-ago"]
    )
    (refresh,) = re.findall(
        r'<noscript><p><a class="button second" href="(.*?)">', page.source
    )
    assert refresh == "?lang=en"


BITCOIN = re.compile(r"\d\.\d{8}")


@pytest.mark.parametrize("came_sats", [0, 20_000, 41_667, 50_000])
def test_the_amount_in_bitcoin_stands_once_on_a_page(shop, came_sats):
    """Beside it only other sums do, such as what has come."""
    invoice = shop.invoice()
    if came_sats:
        pay(shop, invoice, came_sats)
    page = show(shop, invoice)
    text = re.sub(r"<[^>]*>", " ", page.source.partition("<main")[2].partition(">")[2])
    shown = BITCOIN.findall(text)
    assert shown.count(page.texts["amount-btc"]) == 1
    expected = {
        0: ["0.00041667"],
        20_000: ["0.00021667", "0.00020000"],
        41_667: ["0.00041667"],
        50_000: ["0.00041667", "0.00008333", "0.00050000"],
    }
    assert shown == expected[came_sats]


def test_an_invoice_of_a_link_shows_its_title_and_its_description(shop):
    both = shop.link(amount_usd=7, title="Membership", description="One year")
    page = show(shop, {"id": made(press(shop.client, both))})
    assert (page.texts["title"], page.texts["description"]) == (
        "Membership",
        "One year",
    )
    title = shop.link(amount_usd=7, title="Membership")
    page = show(shop, {"id": made(press(shop.client, title))})
    assert page.texts["description"] == "Membership" and "title" not in page.texts


def test_a_part_asks_for_exactly_the_rest_at_the_same_address(shop):
    invoice = shop.invoice()
    whole = show(shop, invoice)
    pay(shop, invoice, 20_000, confirmed=False)
    page = show(shop, invoice)
    assert page.state == "partial"
    assert "0.00020000 BTC arrived" in page.texts["words"]
    assert "Please send the rest to the same address." in page.texts["words"]
    assert page.uri.startswith(
        f"bitcoin:{invoice['deposit_address']}?amount=0.00021667"
    )
    assert page.attributes["copy-amount"]["data-copy"] == "0.00021667"
    rest = qr.payment_uri(invoice["deposit_address"], 21_667)
    assert qr_svg(rest) in page.source and qr_svg(rest) not in whole.source
    assert page.texts["amount"] == "$13.00"
    assert page.texts["amount-total"] == "of $25.00 in total"
    assert page.source.count('data-sats="21,667 satoshis">') == 1
    assert page.attributes["copy-amount"]["data-copy-sats"] == "21667"


@pytest.mark.parametrize(
    ("came_sats", "current"),
    [(0, []), (20_000, ["Payment"]), (41_667, ["Confirmation"])],
    ids=["nothing is sent", "a part is sent", "all is sent"],
)
def test_no_step_of_a_payment_is_lit_before_it_is_reached(shop, came_sats, current):
    invoice = shop.invoice()
    if came_sats:
        pay(shop, invoice, came_sats, confirmed=False)
    page = show(shop, invoice)
    assert re.findall(r'<li aria-current="step">(.*?)</li>', page.source) == current
    assert ("Its fee comes on top" in page.texts.get("fee", "")) is (came_sats < 41_667)


def test_a_payment_that_was_seen_shows_its_steps_before_its_address(shop):
    invoice = shop.invoice()
    pay(shop, invoice, confirmed=False)
    source = show(shop, invoice).source
    assert source.index('id="steps"') < source.index('id="address"')
    assert source.count('id="steps"') == 1


def test_who_paid_too_much_is_not_told_that_nothing_is_left_to_do(shop):
    paid, overpaid = (shop.invoice() for _ in range(2))
    pay(shop, paid, confirmed=False)
    pay(shop, overpaid, overpaid["amount_sats"] + 1000, confirmed=False)
    nothing = "do not need to do anything else"
    assert nothing in show(shop, paid).texts["words"]
    words = show(shop, overpaid).texts["words"]
    assert nothing not in words and "ask the seller about the difference" in words


def test_nobody_is_told_at_once_that_the_chain_was_not_looked_at_yet(shop):
    invoice = shop.invoice()
    for minutes, is_said in ((0, False), (2, True)):
        shop.clock.move(minutes=minutes)
        checked = show(shop, invoice).attributes["checked"]
        assert ("hidden" not in checked) is is_said


def test_what_is_seen_in_full_waits_for_confirmations_and_asks_for_nothing(open_shops):
    shop = open_shops(BLOCKTILL_CONFIRMATIONS="3")
    seen = shop.invoice()
    mined = shop.invoice()
    pay(shop, seen, confirmed=False)
    page = show(shop, seen)
    assert page.state == "seen" and not page.asks_for_money
    assert "3 more confirmations" in page.texts["words"]
    assert page.texts["confirmations"] == "Confirmations: 0 of 3"
    assert "usually 30 minutes" in page.source
    assert page.texts["address"] == seen["deposit_address"]
    add_header(shop.service.db, 100, b"\x01" * 80)
    pay(shop, mined)
    add_header(shop.service.db, 101, b"\x00" * 80)
    page = show(shop, mined)
    assert "one more confirmation" in page.texts["words"]
    assert page.texts["confirmations"] == "Confirmations: 2 of 3"


def test_a_paid_invoice_is_a_receipt_with_amount_time_transaction_and_usd(shop):
    invoice = shop.invoice(1234.5, description="Coffee")
    txid = pay(shop, invoice)
    page = show(shop, invoice)
    assert (page.state, page.texts["state"]) == (
        "paid",
        "Paid",
    ) and not page.asks_for_money
    assert page.texts["transaction"] == txid
    assert page.texts["amount"] == "$1,234.50"
    assert page.texts["amount-btc"] == full_btc_text(invoice["amount_sats"])
    paid_at = shop.get(f"/invoices/{invoice['id']}").json["paid_at"]
    assert page.attributes["paid-at"]["datetime"] == paid_at
    assert page.texts["paid-at"].endswith(" UTC")
    assert "received-btc" not in page.texts and "beyond" not in page.texts


TOO_MUCH = {
    "in one payment": ([50_000], True, "0.00008333"),
    "that waits for its block": ([50_000], False, "0.00008333"),
    "by a second payment": ([41_667, 1000], True, "0.00001000"),
    "by what can be sent": ([41_667 + 294], True, "0.00000294"),
    "by what cannot be sent back": ([41_667 + 293], True, None),
    "by nothing": ([41_667], True, None),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_too_much_says_how_much_and_whom_to_ask(shop, case):
    payments, confirmed, more = TOO_MUCH[case]
    invoice = shop.invoice()
    for sats in payments:
        pay(shop, invoice, sats, confirmed=confirmed)
    page = show(shop, invoice)
    beyond = page.texts.get("beyond", "")
    assert (
        f"{more} BTC more arrived" in beyond and "ask the seller" in beyond
    ) is bool(more)
    if case == "in one payment":  # the receipt has both amounts
        amounts = page.texts["received-btc"], page.texts["amount-btc"]
        assert amounts == ("0.00050000", "0.00041667")


def test_a_canceled_or_expired_invoice_reassures_and_acknowledges_what_came_too_late(
    shop,
):
    invoice, canceled = (shop.invoice(expires_in_hours=1) for _ in range(2))
    finish(shop, canceled, "canceled")
    page = show(shop, canceled)
    assert page.state == "canceled" and not page.asks_for_money
    assert "Please do not pay." in page.texts["words"]
    shop.clock.move(hours=2)
    finish(shop, invoice, "expired")
    page = show(shop, invoice)
    assert page.state == "expired" and not page.asks_for_money
    assert "do nothing: it will be found" in page.texts["words"]
    assert page.texts["address"] == invoice["deposit_address"]
    pay(shop, invoice, 1000)
    page = show(shop, invoice)
    assert page.state == "expired" and "0.00001000 BTC arrived" in page.texts["beyond"]


LATE = {
    "after its deadline": "overdue",
    "after its end": "expired",
    "after a cancellation": "canceled",
    "on top": "paid",
}


def came(shop, invoice):
    """What its open page is told has come, and how much of it is not confirmed."""
    status = shop.client.get(f"/pay/{invoice['id']}/status").json
    return status["status"], status["received_sats"], status["unconfirmed_sats"]


@pytest.mark.parametrize("when", LATE)
def test_what_comes_late_or_on_top_changes_an_open_page_when_seen_and_when_mined(
    shop, when
):
    state = LATE[when]
    invoice = shop.invoice(expires_in_hours=1)
    status = "open" if state == "overdue" else state
    before_sats = invoice["amount_sats"] if state == "paid" else 0
    if state == "paid":
        pay(shop, invoice)
    shop.clock.move(hours=2)
    if state in ("expired", "canceled"):
        finish(shop, invoice, state)
    page = show(shop, invoice)
    assert page.state == state and "beyond" not in page.texts
    assert came(shop, invoice) == (status, before_sats, 0)
    scan = Scan(shop.clock(), 100, waiting=[SeenOutput("ab" * 32, 0, 1000)])
    apply(shop.service.db, shop.service.settings, {invoice["id"]: scan}, shop.clock())
    assert came(shop, invoice) == (status, before_sats + 1000, 1000)
    seen = " ".join(show(shop, invoice).texts["beyond"].split())
    assert re.match(
        r"0\.00001000 BTC .*\. It is not confirmed yet\. The seller has it", seen
    )
    block = Block(100, "0b" * 32, shop.clock())
    mined = SeenOutput("ab" * 32, 0, 1000, block, position=1)
    scan = Scan(shop.clock(), 100, confirmed=[mined], proofs={"ab" * 32: "{}"})
    apply(shop.service.db, shop.service.settings, {invoice["id"]: scan}, shop.clock())
    assert came(shop, invoice) == (status, before_sats + 1000, 0)
    beyond = show(shop, invoice).texts["beyond"]
    assert beyond.startswith("0.00001000 BTC") and "not confirmed" not in beyond


def test_half_paid_and_expired_says_what_came_and_gives_one_advice(shop):
    invoice = shop.invoice(expires_in_hours=1)
    pay(shop, invoice, 20_000)
    shop.clock.move(hours=2)
    for state in ("overdue", "expired"):
        page = show(shop, invoice)
        words = " ".join(page.texts["words"].split())
        assert page.state == state and words == " ".join(page.texts["beyond"].split())
        assert words.startswith(
            "0.00020000 BTC arrived, worth $12.00 at this payment\u2019s price."
        )
        assert words.count("please") == 1
        assert page.texts["amount"] == "$25.00"
        if state == "overdue":
            finish(shop, invoice, "expired")


@pytest.mark.parametrize("state", ["overdue", "expired"])
def test_an_invoice_of_a_link_that_was_not_paid_in_time_offers_a_new_one(shop, state):
    link = shop.link(amount_usd=7.5)
    first = made(press(shop.client, link))
    shop.clock.move(hours=2)
    if state == "expired":
        finish(shop, {"id": first}, "expired")
    page = show(shop, {"id": first})
    form = page.attributes["pay"]
    assert page.state == state and form["action"] == f"../link/{link['id']}"
    fields = {"amount": "7.5", "press": page.attributes["again"]["value"]}
    again = made(shop.client.post(f"/link/{link['id']}", data=fields))
    assert again != first and show(shop, {"id": again}).state == "waiting"
    assert (
        made(shop.client.post(f"/link/{link['id']}", data=fields)) == again
    )  # sent twice
    shop.service.db.run(links.SET_STATUS, id=link["id"], status="inactive")
    gone = show(shop, {"id": first})
    assert (
        "pay" not in gone.attributes
        and "still want to, please ask the seller" in gone.texts["words"]
    )
    shop.service.db.run(links.SET_STATUS, id=link["id"], status="active")
    pay(shop, shop.get(f"/invoices/{first}").json, 12_500)  # too late
    late = show(shop, {"id": first})
    assert "pay" not in late.attributes and "$7.50" in late.texts["beyond"]


def test_past_its_deadline_an_open_invoice_has_its_own_words_unless_it_was_seen(shop):
    invoice, seen, dust = (
        shop.invoice(usd, expires_in_hours=1) for usd in (25, 25, 0.0001)
    )
    pay(shop, seen, confirmed=False)
    shop.clock.move(hours=1, milliseconds=-1)
    assert show(shop, invoice).state == "waiting"
    shop.clock.move(milliseconds=1)
    page = show(shop, invoice)
    assert page.state == "overdue" and not page.asks_for_money
    assert "it will be found" in page.texts["words"]
    assert show(shop, seen).state == "seen"
    page = show(shop, dust)  # not the least that can be sent: nothing is asked for
    assert page.state == "overdue" and page.texts["amount-btc"] == "0.00000001"
    assert "dust" not in page.texts


def test_a_ring_shows_what_is_left_and_a_countdown_the_last_five_minutes(shop):
    invoice = shop.invoice(expires_in_hours=4)
    ends_at = shop.clock.at + timedelta(hours=4)
    shop.clock.move(hours=3)
    page = show(shop, invoice)
    assert page.attributes["ring-left"]["stroke-dasharray"] == "25 100"
    assert page.attributes["main"]["data-life-ms"] == "14400000"
    for left_ms, counts, shown in (
        (300_000, False, "5:00"),
        (299_000, True, "4:59"),
        (1, True, "0:01"),
    ):
        shop.clock.at = ends_at - timedelta(milliseconds=left_ms)
        page = show(shop, invoice)
        assert ("hidden" in page.attributes["time-left"]) is not counts
        assert ("hidden" in page.attributes["pay-by"]) is counts
        assert page.texts["countdown"] == shown


def test_what_was_seen_and_vanished_is_said_until_more_comes(shop):
    invoice = shop.invoice(expires_in_hours=1)
    pay(shop, invoice, confirmed=False)
    vanish(shop, invoice)
    page = show(shop, invoice)
    assert page.state == "waiting" and "it vanished" in page.texts["story"]
    assert "please pay again" in page.texts["story"]
    shop.clock.move(hours=2)
    late = show(shop, invoice)
    assert late.state == "overdue" and "it vanished" in late.texts["story"]
    assert "please pay again" not in late.texts["story"]
    shop.clock.move(hours=-2, minutes=1)
    pay(shop, invoice, 1_000, confirmed=False)
    assert "story" not in show(shop, invoice).attributes


def test_what_was_replaced_by_as_much_has_not_vanished(shop):
    """One look shows both: that the old one is gone, and the new one."""
    invoice = shop.invoice()
    pay(shop, invoice, 1_000, confirmed=False)
    shop.clock.move(minutes=1)
    vanish(shop, invoice)
    pay(shop, invoice, 1_000, confirmed=False)
    page = show(shop, invoice)
    assert page.state == "partial" and "story" not in page.attributes


@pytest.mark.parametrize("again", [True, False], ids=["waits again", "is gone"])
def test_a_payment_that_a_reorganisation_took_back_is_spoken_of(shop, again):
    invoice = shop.invoice()
    if again:
        pay(shop, invoice, confirmed=False)
    wanted = {
        "invoice_id": invoice["id"],
        "reason": "reorganised",
        "since_ms": 1,
        "stake_minor": 1,
    }
    wanted["merchant_id"] = shop.merchant_id
    shop.service.db.run(attentions.WANT, **wanted)
    page = show(shop, invoice)
    assert page.state == ("seen" if again else "waiting")
    assert "a reorganisation of the blockchain" in page.texts["story"]
    assert ("please pay again" in page.texts["story"]) is not again


def test_the_page_says_when_the_chain_was_last_looked_at(shop):
    invoice = shop.invoice()
    looked_at = shop.clock.at
    pay(shop, invoice, 1, confirmed=False)
    for passed_s, said, long_ago in (
        (0, "1 second ago", False),
        (12, "12 seconds ago", False),
        (600, "10 minutes ago", False),
        (601, "10 minutes ago", True),
        (7200, "2 hours ago", True),
        (-5, "1 second ago", False),  # a clock that was set back
    ):
        shop.clock.at = looked_at + timedelta(seconds=passed_s)
        page = show(shop, invoice)
        assert page.texts["checked"] == f"Blockchain last checked: {said}"
        assert ("hidden" not in page.attributes["long-ago"]) is long_ago


@pytest.mark.parametrize(
    ("per_hour", "blocks", "said"),
    [("60", 10, False), ("60", 11, True), ("1", 6, False), ("600", 12, False)],
    ids=["a quarter of an hour", "more", "few, however slow", "those of a new shop"],
)
def test_the_page_says_how_long_reading_takes_while_many_blocks_are_to_be_read(
    open_shops, per_hour, blocks, said
):
    shop = open_shops(BLOCKTILL_EXPLORER_CALLS_PER_HOUR=per_hour)
    invoice = shop.invoice()
    for height in range(100, 100 + blocks):
        add_header(shop.service.db, height, bytes([height]) * 80)
    page = show(shop, invoice)
    assert ("behind" in page.texts) is said
    assert not said or "(11, about 1 h left)" in page.texts["behind"]


def test_the_page_carries_the_status_that_the_script_compares_with(shop):
    invoice = shop.invoice(expires_in_hours=1)
    pay(shop, invoice, 5, confirmed=False)
    status = shop.client.get(f"/pay/{invoice['id']}/status").json
    assert (
        show(shop, invoice).status == status
        and " ".join(sorted(status)) == STATUS_FIELDS
    )


def test_page_and_status_tell_nothing_but_what_they_are_for(shop):
    invoice = shop.invoice(customer_email="payer@example.com")
    other = shop.invoice(customer_email="other@example.com")
    row = shop.service.db.get(invoices.WHOLE, id=invoice["id"])
    shown = shop.client.get(f"/pay/{invoice['id']}").text
    shown += shop.client.get(f"/pay/{invoice['id']}/status").text
    for secret in (
        "example.com",
        other["id"],
        other["deposit_address"],
        "pub",
        row.price_usd,
    ):
        assert secret not in shown
    fields = invoice_values(
        snapshot_of(shop.service, invoice["id"]), merchants.NO_BRAND, Notices()
    ).keys()
    assert not fields & {
        "customer_email",
        "merchant_id",
        "price_usd",
        "payment_link_id",
        "xpub",
    }


@pytest.mark.parametrize(("descriptor", "least"), ACCOUNTS.values(), ids=ACCOUNTS)
def test_no_page_asks_for_less_than_can_be_sent_to_its_kind_of_address(
    shop, descriptor, least
):
    shop.sql(f"UPDATE merchant SET descriptor = '{descriptor}'")  # noqa: S608
    for asked, due in (
        (6, least),
        (least - 1, least),
        (least, least),
        (least + 1, least + 1),
    ):
        invoice = shop.invoice(asked * 0.0006)
        assert invoice["amount_sats"] == asked
        page = show(shop, invoice)
        assert page.texts["amount-btc"] == full_btc_text(due)
        assert page.attributes["copy-amount"]["data-copy"] == btc_text(due)
        assert (
            page.uri == f"bitcoin:{invoice['deposit_address']}?amount={btc_text(due)}"
        )
        assert ("dust" in page.texts) == (asked < least)
        assert (page.status["amount_sats"], page.status["missing_sats"]) == (
            asked,
            asked,
        )
    dust = show(shop, shop.invoice(0.0001)).texts
    assert (
        "due is only 0.00000001 BTC" in dust["dust"]
        and dust["amount"] == "<\u00a0$0.01"
    )
    assert (
        f"the smallest amount that can be sent, {full_btc_text(least)} BTC"
        in dust["dust"]
    )


def test_a_part_that_leaves_less_than_can_be_sent_can_still_be_completed(shop):
    for missing, due in ((67, 294), (293, 294), (294, 294), (295, 295)):
        invoice = shop.invoice()
        came = invoice["amount_sats"] - missing
        pay(shop, invoice, came)
        page = show(shop, invoice)
        assert (page.state, page.texts["amount-btc"]) == ("partial", full_btc_text(due))
        assert (
            f"amount={btc_text(due)}" in page.uri
            and page.status["missing_sats"] == missing
        )
        assert f"{full_btc_text(came)} BTC arrived" in page.texts["words"]
        assert ("Please send the rest" in page.texts["words"]) == (missing == due)
        assert ("dust" in page.texts) == (missing < due)


def test_a_page_never_shows_more_confirmations_than_are_asked_for(shop):
    row = shop.service.db.get(invoices.WHOLE, id=shop.invoice()["id"])
    row = replace(row, received_sats=row.amount_sats, unconfirmed_sats=row.amount_sats)
    page = invoice_values(
        Snapshot(row, 0, 6, 1, shop.clock(), 294), merchants.NO_BRAND, Notices()
    )
    assert (page["state"], page["confirmations"], page["confirmations_left"]) == (
        "seen",
        1,
        0,
    )


HOSTILE = {
    "a script": "<script>alert(1)</script>",
    "an image that breaks out": '"><img src=x onerror=alert(1)>',
    "the template's own language": "{{ 7 * 7 }}{% raw %}",
    "a format": "%(name)s %s 100%",
    "an attribute": "' data-state='paid",
    "what turns the writing around": "pay \u202etnuoma\u202c",
}


def test_a_description_is_text_and_never_markup(shop):
    for case, text in HOSTILE.items():
        page = show(shop, shop.invoice(description=text))
        assert page.texts["description"] == text, case
        assert [tag for tag, _ in page.tags].count("script") == 1
        assert "img" not in [tag for tag, _ in page.tags]
        assert page.attributes["description"]["dir"] == "auto"
    (style,) = (
        named["href"] for _, named in page.tags if named.get("rel") == "stylesheet"
    )
    isolated = r"#description \{[^}]*unicode-bidi: isolate"
    assert re.search(isolated, shop.client.get(style[2:]).text)


FOLDED = {
    "a short one": ("x" * 160, False),
    "a long one": ("x" * 161, True),
    "a few lines": ("a\n" * 3 + "b", False),
    "many lines": ("a\n" * 4 + "b", True),
}


def test_a_long_description_is_folded_so_that_the_wallets_button_is_in_sight(shop):
    for case, (text, is_folded) in FOLDED.items():
        pages = [show(shop, shop.invoice(description=text))]
        link = shop.link(description=text)
        pages.append(Page(shop.client.get(f"/link/{link['id']}").text))
        for page in pages:
            assert (
                ("details", page.attributes["description"]) in page.tags
            ) == is_folded, case
            assert text in page.texts["description"]


def test_the_uri_has_the_amount_as_bip21_writes_it():
    for sats, amount in (
        (1, "0.00000001"),
        (10, "0.0000001"),
        (100_000_000, "1"),
        (2_100_000_000_000_000, "21000000"),
        (123_456_789_012, "1234.56789012"),
    ):
        assert qr.payment_uri("bc1qx", sats) == f"bitcoin:bc1qx?amount={amount}"


def test_label_and_message_are_percent_encoded_and_a_long_one_is_cut():
    uri = qr.payment_uri("bc1qx", 1, "Caf\u00e9 & Co", "a=b?c#d /\n100%")
    label, message = uri.split("&")[1:]
    assert label == "label=Caf%C3%A9%20%26%20Co"
    assert message == "message=a%3Db%3Fc%23d%20%2F%0A100%25"
    uri = qr.payment_uri("bc1q", 1, message="\u20bf" * 10_000)
    assert parse_qs(urlsplit(uri).query)["message"] == [
        "\u20bf" * qr.MESSAGE_CHARACTERS
    ]


def test_the_qr_code_is_on_white_with_four_modules_around_and_no_style():
    svg = qr_svg(
        "bitcoin:bcrt1qs9j2lu0zsdg39qhv997pukrfups05er9ha3h9x?amount=0.00041667"
    )
    assert svg.startswith(
        '<svg viewBox="0 0 45 45"><path fill="#fff" d="M0 0h45v45h-45z"/>'
    )
    assert (
        'd="M4 4.5h7' in svg
    )  # version 5 has 37 modules; four are left free on each side
    assert "style" not in svg and "class" not in svg
