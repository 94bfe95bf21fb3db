"""A payment link's questions: what its payer answers, where that is shown, and its end."""

import csv
import io

import pytest

from btcpay.invoices.emails import erase_emails
from btcpay.notify.events import events_after
from storage.queries import invoices
from tests.support.builders import pay
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.payer import Page, count, made, press

pytestmark = pytest.mark.both_databases
ASKED = {"ask_email": "must", "ask_name": "must", "ask_note": "may"}
GIVEN = {"email": "ada@example.com", "name": "Ada Lovelace", "note": "For\ntable <7>"}


@pytest.fixture
def shop(open_shops):
    return open_shops(**ON)


def asking(shop, asks=ASKED):
    link = shop.link(title="Tea")
    said = ", ".join(f"{name} = '{how}'" for name, how in asks.items())
    shop.sql(f"UPDATE payment_link SET {said} WHERE id = '{link['id']}'")  # noqa: S608
    return link


def answer(shop, link, amount="5", **fields):
    return shop.client.post(f"/link/{link['id']}", data={"amount": amount, **fields})


def stored(shop, id):
    row = shop.service.db.get(invoices.WHOLE, id=id)
    return {name: getattr(row, f"customer_{name}") for name in GIVEN}


def test_what_a_payer_says_is_in_lists_receipt_csv_and_events_and_not_in_the_interface(
    shop,
):
    link = asking(shop)
    id = made(answer(shop, link, **GIVEN | {"note": "For\r\ntable <7>"}))
    assert stored(shop, id) == GIVEN
    invoice = shop.get(f"/invoices/{id}").json
    assert invoice["customer_email"] == GIVEN["email"] and "Lovelace" not in str(
        invoice
    )
    shown = shop.get(f"/payment-links/{link['id']}").json
    assert [name for name in shown if "ask" in name] == []
    waiting = shop.client.get(f"/pay/{id}").text
    pay(shop, invoice)
    receipt = Page(shop.client.get(f"/pay/{id}").text)
    assert (
        receipt.texts["customer-name"] == GIVEN["name"] and GIVEN["name"] not in waiting
    )
    assert (
        receipt.texts["customer-note"] == GIVEN["note"]
        and GIVEN["email"] not in receipt.source
    )
    browser = MerchantBrowser(shop).log_in()
    page = browser.page(f"/invoices/{id}")
    assert [page.texts[f"customer-{it}"] for it in ("name", "note")] == [
        *GIVEN.values()
    ][1:]
    for path in ("/invoices", "/invoices?q=lovelace", "/payments?q=table"):
        assert id in browser.get(path).text, path
    assert GIVEN["name"] in browser.get("/invoices").text
    (line,) = csv.DictReader(io.StringIO(browser.get("/downloads/payments").text))
    assert {name: line[f"customer_{name}"] for name in GIVEN} == GIVEN
    for event in events_after(shop.service.db, shop.service.resources, 0)[1:]:
        assert event.data["customer_name"] == GIVEN["name"]
        assert event.data["customer_note"] == GIVEN["note"]


REFUSED = {
    "no name": ({"name": " "}, "name", "needs this"),
    "no address": ({"email": ""}, "email", "needs this"),
    "no address of mail": ({"email": "ada"}, "email", "not an e-mail address"),
    "a name in lines": ({"name": "Ada\nLovelace"}, "name", "cannot be seen (U+000A)"),
    "a name that shows nothing": ({"name": "\u200d"}, "name", "needs this"),
    "a name that turns": ({"name": "Ada \u202e"}, "name", "cannot be seen (U+202E)"),
    "a long name": ({"name": "x" * 101}, "name", "at most 100"),
    "a long note": ({"note": "x" * 501}, "note", "at most 500"),
    "a null in a note": ({"note": "a\0b"}, "note", "cannot be seen (U+0000)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_answer_that_cannot_be_taken_is_shown_again_with_the_reason(shop, case):
    change, field, reason = REFUSED[case]
    answered = answer(shop, asking(shop), **GIVEN | change)
    page = Page(answered.text)
    assert answered.status_code == 400 and reason in page.texts[f"{field}-problem"]
    assert (
        page.attributes[field]["aria-invalid"] == "true" and "problem" not in page.texts
    )
    assert page.values["amount"] == "5" and count(shop) == 0


def test_names_are_taken_as_their_script_writes_them(shop):
    for name, kept in (
        ("\u5c71\u7530\u3000\u592a\u90ce", "\u5c71\u7530 \u592a\u90ce"),
        ("\u0639\u0644\u06cc\u200c\u0631\u0636\u0627 \U0001fae9", None),
    ):
        taken = stored(shop, made(answer(shop, asking(shop), **GIVEN | {"name": name})))
        assert taken["name"] == (kept or name)


def test_a_question_may_be_left_open_and_what_was_not_asked_is_not_stored(shop):
    longest = {"email": GIVEN["email"], "name": "x" * 100, "note": "x" * 500}
    assert stored(shop, made(answer(shop, asking(shop), **longest))) == longest
    open_link = asking(shop, dict.fromkeys(ASKED, "may"))
    nothing = dict.fromkeys(GIVEN)
    assert stored(shop, made(answer(shop, open_link))) == nothing
    assert stored(shop, made(answer(shop, shop.link(), **GIVEN))) == nothing


def test_suggested_amounts_are_sent_with_the_answers_and_enter_pays_what_was_typed(
    shop,
):
    link = asking(shop)
    shop.sql("UPDATE payment_link SET suggested = '7 9'")
    page = Page(shop.client.get(f"/link/{link['id']}").text)
    buttons = [attrs for tag, attrs in page.tags if tag == "button"]
    assert [one.get("value") for one in buttons] == [None, "7", "9", None]
    assert [tag for tag, _ in page.tags].count("form") == 1
    # the button, then the field behind it
    pressed = answer(shop, link, ["7", "8"], **GIVEN)
    assert shop.get(f"/invoices/{made(pressed)}").json["amount_usd_quote"] == 7


def test_the_same_press_with_other_answers_is_another_invoice(shop):
    link = asking(shop)
    form = Page(shop.client.get(f"/link/{link['id']}").text).values
    ids = [
        made(answer(shop, link, press=form["press"], **GIVEN | {"name": name}))
        for name in ("Ada", "Ada", "Grace")
    ]
    assert ids[0] == ids[1] != ids[2] and stored(shop, ids[2])["name"] == "Grace"


def test_all_is_erased_with_the_address_also_where_there_is_none(shop, clock):
    for fields in (GIVEN, {"name": "Ada"}, {"note": "Hello"}):
        link = asking(shop, dict.fromkeys(ASKED, "may"))
        id = made(answer(shop, link, **fields))
        pay(shop, shop.get(f"/invoices/{id}").json)
        clock.move(days=30, seconds=1)
        assert erase_emails(shop.service.db, 30, clock()) == 1
        assert stored(shop, id) == dict.fromkeys(GIVEN)
    last = events_after(shop.service.db, shop.service.resources, 0)[-1]
    assert last.data["customer_name"] is last.data["customer_note"] is None


def test_a_link_that_asks_nothing_has_no_such_field(shop):
    page = Page(shop.client.get(f"/link/{shop.link()['id']}").text)
    assert (
        not {*GIVEN} & {*page.values}
        and press(shop.client, shop.link(), "5").status_code == 303
    )
