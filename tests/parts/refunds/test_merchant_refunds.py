"""The merchant's side: a refund is made on an invoice's page, and sent from the list of refunds."""

import re
from urllib.parse import unquote

import pytest

from btcpay.parts.refunds import queries
from btcpay.values.money import full_btc_text
from tests.support.attention_cases import too_much
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.payer import Page
from tests.support.shop_refunds import address, found, give, made, paid, send, sent


@pytest.fixture
def till(open_tills):
    return open_tills(**ON)


@pytest.fixture
def browser(till):
    return MerchantBrowser(till.shop).log_in()


def refunds(till, invoice):
    return till.shop.service.db.rows(queries.OF_INVOICE, invoice_id=invoice["id"])


def inbox(browser):
    """The number in the menu; "" for none."""
    return " ".join(browser.page("/refunds").texts.get("inbox", "").split()).rpartition(
        " "
    )[2]


def test_a_refund_is_made_on_an_invoices_page_and_sent_from_the_list(till, browser):
    invoice = too_much(till)
    form = {"press": "a", "currency": "USD", "reason": "too much"}
    for _ in range(2):
        answer = browser.post(f"/invoices/{invoice['id']}/refund", **form)
        assert answer.headers["Location"].endswith("/refunds?done=made")
    (refund,) = refunds(till, invoice)
    assert (refund.amount_sats, refund.reason, refund.status) == (
        294,
        "too much",
        "requested",
    )
    url = f"{till.settings.base_url}/refund/{refund.id}"
    assert f'data-copy="{url}"' in browser.page("/refunds").source
    give(till, refund, address(1))
    ready = browser.page("/refunds").source
    assert f'href="bitcoin:{address(1)}?amount=0.00000294"' in ready and "<svg" in ready
    sent(till, refunds(till, invoice)[0])
    assert refunds(till, invoice)[0].tx_hash in browser.page("/refunds").source
    assert "was sent back" in browser.page(f"/invoices/{invoice['id']}").source


def test_an_amount_of_money_goes_at_todays_price_rounded_down(till, browser):
    invoice = paid(till)
    form = {"press": "b", "currency": "USD", "amount": "10.00", "address": address(1)}
    browser.post(f"/invoices/{invoice['id']}/refund", **form)
    (refund,) = refunds(till, invoice)
    assert (refund.status, refund.amount_sats) == ("ready", 16_666)


def double_the_price_of(till, invoice):
    """As if a bitcoin had cost twice as much when the invoice was made."""
    till.shop.sql(
        f"UPDATE invoice SET price_usd = '120000', price = '120000' WHERE id = '{invoice['id']}'"  # noqa: S608
    )


def test_the_amount_that_is_filled_in_sends_back_exactly_what_is_left(till, browser):
    """Also when the price has changed; another amount is converted at the new one."""
    invoice = till.shop.invoice()
    till.confirm(invoice, invoice["amount_sats"] + 8_333)
    double_the_price_of(till, invoice)
    path = f"/invoices/{invoice['id']}"
    page = browser.page(f"{path}?refund=open")
    red_card = page.source.partition('id="attention"')[2].partition("</section>")[0]
    assert '<details class="decision" open>' in red_card
    assert page.values["amount"] == page.values["offered"] == "10.00"
    assert "exactly 0.00008333 BTC" in page.texts["refund-left"]
    form = {name: page.values[name] for name in ("amount", "offered", "left")}
    browser.post(f"{path}/refund", press="a", currency="USD", **form)
    form |= {"amount": "3.00", "left": "0"}
    browser.post(f"{path}/refund", press="b", currency="USD", **form)
    assert [row.amount_sats for row in refunds(till, invoice)] == [8_333, 5_000]


def test_every_page_of_a_refund_has_its_money_before_its_bitcoin(till, browser, ticker):
    """As it was typed, else at the invoice's price, whatever a bitcoin costs now."""
    invoice = paid(till)
    path = f"/invoices/{invoice['id']}"
    double_the_price_of(till, invoice)
    form = {"press": "b", "currency": "USD", "amount": "10.00"}
    browser.post(f"{path}/refund", **form)
    rest = made(till, invoice, 5_000)
    (typed, _) = refunds(till, invoice)
    assert (typed.amount_sats, typed.asked_amount) == (16_666, "10.00")
    for row, money in ((typed, "$10.00"), (rest, "$6.00")):
        page = Page(till.shop.client.get(f"/refund/{row.id}").text)
        assert page.texts["amount"] == money
        bitcoin = f"{full_btc_text(row.amount_sats)} BTC"
        assert page.texts["bitcoin"] == bitcoin
        both = f"{money} · <bdi>{bitcoin}</bdi>"
        for address_of_page in ("/refunds", path):
            assert both in browser.page(address_of_page).source
    send_all(till, refunds(till, invoice))
    sent_rows = browser.page("/refunds").source
    assert "$10.00<br>" in sent_rows and "$6.00<br>" in sent_rows


def send_all(till, rows):
    for number, row in enumerate(rows):
        send(till, give(till, row, address(number + 1)))
    till.mine_and_check()


def test_a_page_that_is_out_of_date_makes_no_refund_of_what_it_did_not_show(
    till, browser
):
    """The page says that an empty field is the excess; once that is promised, all is left."""
    invoice = too_much(till)
    path = f"/invoices/{invoice['id']}"
    left = browser.page(path).values["left"]
    for press in "ab":
        answer = browser.post(f"{path}/refund", press=press, currency="USD", left=left)
    assert answer.headers["Location"].endswith(f"{path}?done=refund_changed")
    assert [row.amount_sats for row in refunds(till, invoice)] == [294]


def test_a_new_page_after_the_excess_is_promised_makes_nothing_without_a_sum(
    till, browser
):
    """The price of the goods is no excess: to send it back, the sum is said."""
    invoice = too_much(till)
    path = f"/invoices/{invoice['id']}"
    for press in "ab":
        page = browser.page(path)
        form = {"press": press, "currency": "USD", "left": page.values["left"]}
        answer = browser.post(f"{path}/refund", **form)
    assert page.values["left"] == "0"
    assert answer.headers["Location"].endswith(f"{path}?done=refund_amount")
    assert [row.amount_sats for row in refunds(till, invoice)] == [294]


def test_other_money_to_the_address_is_asked_about_and_counts_at_a_press(till, browser):
    refund = made(till, paid(till), 10_000, address(1))
    txid = send(till, refund, 9_700)
    till.mine_and_check()
    page = browser.page("/refunds").source
    assert "0.00009700 BTC came there in block" in page and "was it this?" in page
    (path,) = re.findall(rf'action="[^"]*(/refunds/{refund.id}/sent/[^"?]*)', page)
    assert path.rpartition("/")[2].startswith(txid)
    for _ in range(2):  # a second press is the first
        assert "done=sent" in browser.post(path).headers["Location"]
    assert found(till, refund).sent_sats == 9_700
    assert "was it this?" not in browser.page("/refunds").source
    assert (
        "0.00009700 BTC was sent back."
        in browser.page(f"/invoices/{refund.invoice_id}").source
    )


def test_a_text_that_is_no_output_of_the_refund_changes_nothing(till, browser):
    refund = made(till, paid(till), 10_000, address(1))
    for output in ("x", "0" * 64 + ":0", "%00", "0" * 3_000):
        answer = browser.post(f"/refunds/{refund.id}/sent/{output}")
        assert "done=changed" in answer.headers["Location"]
    assert found(till, refund).status == "ready"


def test_nothing_more_goes_back_while_a_refund_was_sent_twice(till, browser):
    invoice = too_much(till, customer_email="ann@example.com")
    path = f"/invoices/{invoice['id']}"
    refund = made(till, invoice, to=address(1))
    assert f"{path}?refund=open#refund" in browser.page("/attention").source
    sent(till, refund)
    sent(till, refund)
    wanted = browser.page("/attention").source
    assert (
        "the same amount once more" in wanted
        and f"{path}?refund=open#refund" not in wanted
    )
    page = browser.page(path).source
    assert 'name="left"' not in page and "Ask for it back" in page
    assert "Ask for it back" in wanted
    (href,) = re.findall(r'href="(mailto:[^"]*)">Ask for it back', page)
    assert href.startswith("mailto:ann@example.com?subject=")
    assert "sent to you twice" in unquote(href)
    answer = browser.post(f"{path}/refund", press="a", currency="USD", amount="1.00")
    assert answer.headers["Location"].endswith(f"{path}?done=refund_changed")
    assert len(refunds(till, invoice)) == 1
    browser.post(f"{path}/set-aside", reason="they sent it back")
    assert 'name="left"' in browser.page(path).source


@pytest.mark.parametrize(
    ("fields", "code", "sentence"),
    [
        (
            {"amount": "much"},
            "invalid_request&amount=much",
            "Enter an amount such as 25 or 19.90.",
        ),
        (
            {"amount": "1,500"},
            "invalid_request&amount=1%2C500",
            "read as two amounts: 1,500.00 or",
        ),
        (
            {"amount": "€5"},
            "invalid_request&amount=%E2%82%AC5",
            "another currency&#39;s sign",
        ),
        ({"amount": "0"}, "invalid_request&amount=0", "Enter an amount above 0"),
        ({"amount": "60.00"}, "too_much", "cannot be more than twice"),
        ({"address": "bc1q"}, "malformed", "this address cannot be used"),
        (
            {"amount": "0.10", "address": address(1)},
            "dust",
            "this address cannot be used",
        ),
        ({"reason": "x" * 201}, "reason", "the reason has more than 200 characters"),
        ({"reason": "a\u202eb"}, "reason&sign=U%2B202E", "cannot be seen (U+202E)"),
    ],
)
def test_what_is_wrong_is_said_beside_the_form(till, browser, fields, code, sentence):
    invoice = paid(till)
    path = f"/invoices/{invoice['id']}"
    answer = browser.post(f"{path}/refund", press="c", currency="USD", **fields)
    assert answer.headers["Location"].endswith(f"{path}?done=refund_{code}")
    assert refunds(till, invoice) == []
    source = browser.page(f"{path}?done=refund_{code}").source
    assert 'role="alert"' in source and sentence in source


@pytest.mark.parametrize(
    "query", ["reason&sign=Pay%20here", "invalid_request&amount=5"]
)
def test_an_address_that_somebody_made_up_says_nothing_of_its_own(till, browser, query):
    invoice = paid(till)
    source = browser.page(f"/invoices/{invoice['id']}?done=refund_{query}").source
    assert "Nothing was created" in source and "Pay here" not in source


def test_an_invoice_with_a_refund_to_send_counts_once(till, browser):
    assert inbox(browser) == ""
    invoice = too_much(till)
    assert inbox(browser) == "1"
    refund = made(till, invoice, to=address(1))
    made(till, paid(till), 600, address(2))
    assert inbox(browser) == "2"
    attention = browser.page("/attention").source
    assert (
        f"/invoices/{invoice['id']}?refund=open#refund" in attention
        and "/refunds" in attention
    )
    sent(till, refund)
    assert inbox(browser) == "1"


def badges(page):
    """The numbers in the menu, and beside the same items on a page."""
    return re.findall(r'class="waiting">.*?</span>(\d+)</strong>', page.source)


def test_a_refund_to_be_sent_is_counted_in_the_menu_and_told_of_its_sale(till, browser):
    assert badges(browser.page("/more")) == []
    refund = made(till, paid(till))
    assert "Refund: waiting for the address" in browser.page("/invoices").source
    assert badges(browser.page("/more")) == []
    refund = give(till, refund, address(1))
    assert "Refund: to be sent" in browser.page("/invoices").source
    # The tab More, the item in a desk's line, and the item on the page.
    assert badges(browser.page("/more")) == ["1", "1", "1"]
    sent(till, refund)
    sales = browser.page("/invoices")
    assert "1 payment · Refunded" in sales.source and badges(sales) == []


def test_today_says_what_is_to_be_sent_and_the_month_what_was(till, browser):
    refund = made(till, paid(till), 10_000, address(1))
    assert "Refunds to be sent: 1" in browser.page("").source
    assert "Sent back" not in browser.page("/month").source
    sent(till, refund)
    assert "Refunds to be sent" not in browser.page("").source
    assert "Sent back: $6.00" in browser.page("/month").source


def test_the_address_is_cleared_and_the_refund_canceled(till, browser):
    refund = made(till, paid(till), to=address(1))
    browser.post(f"/refunds/{refund.id}/clear")
    assert found(till, refund).status == "requested"
    assert (
        "done=changed"
        in browser.post(f"/refunds/{refund.id}/clear").headers["Location"]
    )
    browser.post(f"/refunds/{refund.id}/cancel")
    assert found(till, refund).status == "canceled"


def test_a_mail_with_its_page_is_prepared(till, browser):
    made(till, paid(till, customer_email="ann@example.com"), 600)
    (href,) = re.findall(
        r'class="(?:mail|button)" href="([^"]*)"', browser.page("/refunds").source
    )
    assert href.startswith("mailto:ann@example.com?subject=")
    assert f"{till.settings.base_url}/refund/rfd_" in unquote(href)


def test_refunds_of_another_merchant_are_not_found(till, browser):
    refund = made(till, paid(till), to=address(1))
    browser.log_in(till.shop.add_merchant("other"))
    for act in ("clear", "cancel", f"sent/{'0' * 64}:0"):
        assert browser.post(f"/refunds/{refund.id}/{act}").status_code == 404
    assert address(1) not in browser.page("/refunds").source


def pay_many_file(browser):
    answer = browser.get("/refunds/pay-many")
    assert answer.status_code == 200 and answer.mimetype == "text/csv"
    assert "attachment" in answer.headers["Content-Disposition"]
    return answer.text


def test_the_file_has_what_is_to_be_sent_and_nothing_else(till, browser):
    invoice = paid(till)
    one = made(till, invoice, 10_000, address(1))
    assert "pay-many" not in browser.page("/refunds").source
    made(till, invoice, 5_000, address(2))
    made(till, invoice, 4_000)
    page = browser.page("/refunds").source
    assert "Send 2 refunds in one transaction" in page and "0.00015000" in page
    assert (
        pay_many_file(browser)
        == f"{address(1)},0.000100001\n{address(2)},0.000050001\n"
    )
    sent(till, one)
    assert pay_many_file(browser) == f"{address(2)},0.000050001\n"


def test_a_refund_that_may_be_sent_already_is_left_out(till, browser):
    invoice = paid(till)
    one = made(till, invoice, 10_000, address(1))
    made(till, invoice, 5_000, address(2))
    send(till, one, 9_700)
    till.mine_and_check()
    page = browser.page("/refunds").source
    assert "was it this?" in page and "pay-many" not in page
    assert pay_many_file(browser) == f"{address(2)},0.000050001\n"


def test_nobody_else_gets_the_file(till, browser):
    made(till, paid(till), 10_000, address(1))
    other = MerchantBrowser(till.shop)
    assert other.get("/refunds/pay-many").status_code != 200
