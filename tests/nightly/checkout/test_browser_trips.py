"""Trips of a payer through the pages, in a real browser before the real server."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES, catalog
from btcpay.values.money import btc_text, full_btc_text
from btcpay.values.times import to_ms
from tests.support.builders import finish
from tests.support.hosted import show


def test_a_part_asks_by_itself_for_the_rest_and_the_rest_pays(open_tab, counter):
    invoice = counter.invoice()
    tab = show(open_tab, counter, invoice)
    address = invoice["deposit_address"]
    whole = invoice["amount_sats"]
    assert tab.qr().text == f"bitcoin:{address}?amount={btc_text(whole)}"
    counter.pay(invoice, 20_000)
    tab.until_state("partial")
    rest = full_btc_text(whole - 20_000)
    assert f"send the rest to the same address. Send {rest} BTC" in tab.text("announce")
    assert tab.qr().text == f"bitcoin:{address}?amount={btc_text(whole - 20_000)}"
    assert tab.text("amount-btc") == rest and tab.text("address") == address
    assert tab.text("amount-total") == "of $25.00 in total"
    assert tab.ask("document.getElementById('open-wallet').href").startswith(
        tab.qr().text
    )
    counter.pay(invoice, whole - 20_000)
    tab.pass_time(3)
    assert tab.text("state") == "Payment seen"
    counter.mine()
    tab.pass_time(3)
    assert tab.text("state") == "Paid"
    assert tab.text("amount-btc") == full_btc_text(whole) and "bitcoin:" not in tab.ask(
        "document.documentElement.outerHTML"
    )


def test_the_last_minutes_are_counted_and_their_end_changes_the_page(open_tab, counter):
    invoice = counter.invoice(left_s=302)
    tab = show(open_tab, counter, invoice)
    assert tab.is_shown("pay-by") and not tab.is_shown("time-left")
    tab.until("document.getElementById('time-left').checkVisibility()")
    assert tab.text("countdown") in ("5:00", "4:59", "4:58") and not tab.is_shown(
        "pay-by"
    )


def test_an_invoice_expires_before_the_payers_eyes(open_tab, counter):
    tab = open_tab(counter.root)
    invoice = counter.invoice(left_s=5)
    tab.go(counter.page(invoice))
    assert tab.is_shown("open-wallet")
    tab.until_state("overdue")
    assert "If you have already paid, do nothing" in tab.text("announce")
    assert (
        not tab.is_shown("open-wallet")
        and tab.text("address") == invoice["deposit_address"]
    )
    counter.till.check()
    tab.pass_time(3)
    assert tab.text("announce").startswith(
        "This payment has expired. Please do not pay now"
    )
    assert tab.text("address") == invoice["deposit_address"]


@pytest.mark.parametrize("end", ["expired", "canceled", "paid"])
def test_what_comes_late_or_on_top_shows_on_a_page_that_stayed_open(
    open_tab, counter, end
):
    tab = open_tab(counter.root)
    invoice = counter.invoice(left_s=5 if end == "expired" else 3000)
    tab.go(counter.page(invoice))
    if end == "canceled":
        finish(counter.shop, invoice, end)
    elif end == "paid":
        counter.pay(invoice)
        counter.mine()
    else:
        tab.until_state("overdue")
        counter.till.check()
    tab.until_state(end)
    assert "beyond" not in tab.ask("document.documentElement.outerHTML")
    counter.pay(invoice, 20_000)
    tab.pass_time(61)
    assert "0.00020000 BTC" in tab.text("beyond") and "not confirmed yet" in tab.text(
        "beyond"
    )
    assert "0.00020000 BTC" in tab.text("announce")
    counter.mine()
    tab.pass_time(61)
    assert "0.00020000 BTC" in tab.text("beyond") and "not confirmed" not in tab.text(
        "beyond"
    )


def test_a_fixed_link_makes_an_invoice_for_each_press_and_leads_on_to_an_unpaid_one(
    open_tab, counter
):
    link = counter.shop.link(amount_usd=12, title="Membership", description="One year")
    tab = show(open_tab, counter, link)
    assert (tab.text("title"), tab.text("price")) == ("Membership", "$12.00")
    tab.until(
        "document.getElementById('worth').textContent === '\u2248\u00a00.00020000\u00a0BTC'"
    )
    tab.click("#submit")
    tab.until("document.getElementById('qr')")
    first = tab.ask("location.pathname")
    assert tab.text("amount") == "$12.00" and tab.text("description") == "One year"
    tab.ask("history.back()")
    tab.until("document.getElementById('continue')")
    tab.click("#continue")
    tab.until("document.getElementById('qr')")
    assert tab.ask("location.pathname") == first
    tab.ask("history.back()")
    tab.until("document.getElementById('submit')")
    tab.click("#submit")
    tab.until("document.getElementById('qr')")
    assert tab.ask("location.pathname") != first


def test_a_flexible_link_says_what_is_wrong_beside_the_field_and_takes_what_is_right(
    open_tab, counter
):
    link = counter.shop.link(min_amount_usd=5, max_amount_usd=50)
    counter.shop.sql("UPDATE payment_link SET suggested = '5 20' WHERE amount IS NULL")
    tab = show(open_tab, counter, link)
    worth = "document.getElementById('worth').textContent"
    tab.click("#amount")
    tab.type("4")
    tab.until(f"{worth} === '\u2248\u00a00.00006667\u00a0BTC'")
    tab.click("#submit")
    tab.until("document.getElementById('amount-problem')")
    assert tab.status == 400
    tab.until("document.activeElement.id === 'amount'")
    assert tab.text("amount-problem") == "Enter an amount from $5.00 to $50.00."
    tab.until(f"{worth} === '\u2248\u00a00.00006667\u00a0BTC'")
    tab.type("7.50")  # in place of the 4
    tab.until(f"{worth} === '\u2248\u00a00.00012500\u00a0BTC'")
    tab.press("Enter")  # the field's own form, not the first of what is suggested
    tab.until("document.getElementById('qr')")
    assert tab.text("amount") == "$7.50"
    tab.go(counter.page(link))
    tab.click("#suggested button:last-child")
    tab.until("document.getElementById('qr')")
    assert tab.text("amount") == "$20.00"


NO_PRICE_YET = {
    "another currency's sign": "$100",
    "its own sign": "€100",
    "its sign behind it": "100 €",
    "groups": "1'000",
    "what may be a thousand": "1.000",
    "the same with a comma": "1,000",
    "more decimals than it has": "1.005",
    "two marks": "1.000,50",
}


@pytest.mark.parametrize("case", NO_PRICE_YET)
def test_beside_what_only_the_service_reads_no_price_is_shown(case, open_tab, counter):
    link = counter.shop.link()
    tab = show(open_tab, counter, link)
    worth = "document.getElementById('worth').textContent"
    tab.click("#amount")
    tab.type("4")
    tab.until(f"{worth} === '\u2248\u00a00.00006667\u00a0BTC'")
    tab.ask("document.getElementById('amount').select()")
    tab.type(NO_PRICE_YET[case])
    tab.until(f"{worth} === ''")
    tab.ask("document.getElementById('amount').select()")
    tab.type("4,00")
    tab.until(f"{worth} === '\u2248\u00a00.00006667\u00a0BTC'")


def test_without_javascript_a_refresh_does_the_same(open_tab, counter):
    link = counter.shop.link(amount_usd=5)
    tab = show(open_tab, counter, link, script=False)
    tab.click("#submit")
    tab.until("document.getElementById('qr')")
    assert tab.qr().text.startswith(f"bitcoin:{tab.text('address')}?amount=")
    assert not tab.is_shown("copy-amount") and not tab.ask(
        "document.querySelector('.js')"
    )
    assert not tab.ask("document.querySelector('.live').checkVisibility()")
    id = tab.ask("location.pathname").rpartition("/")[2]
    invoice = counter.shop.get(f"/invoices/{id}").json
    for change, state in [
        (lambda: counter.pay(invoice, 1_000), "partial"),
        (lambda: counter.pay(invoice, invoice["amount_sats"] - 1_000), "seen"),
        (counter.mine, "paid"),
    ]:
        change()
        tab.click("noscript a")
        tab.until_state(state)
    assert tab.polls == 0 and not tab.ask("document.querySelector('noscript')")


def test_a_lost_connection_is_admitted_and_made_up_for(open_tab, counter):
    invoice = counter.invoice()
    tab = show(open_tab, counter, invoice)
    tab.cut_off(True)
    tab.pass_time(3)
    assert not tab.is_shown("offline")  # once is nothing
    tab.pass_time(3)
    assert tab.is_shown("offline")
    counter.pay(invoice)
    tab.cut_off(False)
    tab.pass_time(1)
    assert tab.text("state") == "Payment seen" and not tab.is_shown("offline")
    assert {text.split()[-2] for text in tab.complaints} == {
        "net::ERR_INTERNET_DISCONNECTED"
    }
    tab.complaints.clear()


def test_a_waiting_page_asks_gently(open_tab, counter):
    """Every two seconds at first, every ten after ten minutes in which nothing happened."""
    tab = show(open_tab, counter, counter.invoice())
    tab.pass_time(60)
    assert 27 <= tab.polls <= 30
    # Ten minutes of asking would fill the invoice's window, whose minute is a real one.
    tab.ask(
        "(real => { performance.now = () => real() + 6e5; })(performance.now.bind(performance))"
    )
    tab.pass_time(10)
    asked = tab.polls
    tab.pass_time(60)
    assert 5 <= tab.polls - asked <= 6


def test_a_page_that_nobody_sees_does_not_ask_until_it_is_looked_at(open_tab, counter):
    invoice = counter.invoice()
    tab = show(open_tab, counter, invoice)
    tab.put_away(True)
    counter.pay(invoice)
    asked = tab.polls
    tab.pass_time(600)
    assert tab.polls - asked <= 1 and tab.text("state") == "Waiting for your payment"
    tab.put_away(False)
    tab.pass_time(1)
    assert tab.text("state") == "Payment seen"


@pytest.mark.parametrize("ended", ["paid", "expired", "canceled"])
def test_a_page_that_has_ended_asks_once_a_minute(open_tab, counter, ended):
    invoice = counter.invoice()
    tab = show(open_tab, counter, invoice)
    if ended == "paid":
        counter.pay(invoice)
        counter.mine()
    else:
        finish(counter.shop, invoice, ended)
    tab.pass_time(3)
    asked = tab.polls
    tab.pass_time(600)
    assert tab.ask("document.getElementById('main').dataset.state") == ended
    assert asked and 9 <= tab.polls - asked <= 10


def test_a_receipt_follows_a_reorganisation_and_the_payment_back(open_tab, counter):
    invoice = counter.invoice()
    tab = show(open_tab, counter, invoice)
    counter.pay(invoice)
    counter.mine()
    tab.pass_time(3)
    assert tab.text("state") == "Paid"
    counter.till.sandbox.chain.reorganise(1, counter.till.now)
    counter.till.check()
    tab.pass_time(61)
    assert tab.text("state") == "Payment seen"
    assert "a reorganisation of the blockchain" in tab.text("announce")
    counter.mine()
    tab.pass_time(3)
    assert tab.text("announce") == "Paid. Thank you. This is your receipt."


def test_amounts_change_their_unit_and_times_are_the_payers_own(open_tab, counter):
    invoice = counter.invoice(left_s=3590)
    tab = open_tab(counter.root)
    before_midnight = (
        23 - datetime.now(UTC).hour + 11
    ) % 24 - 11  # hours east, where it is 23:00
    zones = {
        "Asia/Kathmandu": timedelta(hours=5, minutes=45),
        f"Etc/GMT{-before_midnight:+}": timedelta(hours=before_midnight),
    }
    for zone, ahead in zones.items():
        tab.call("Emulation.setTimezoneOverride", timezoneId=zone)
        tab.go(counter.page(invoice))
        until = datetime.fromisoformat(invoice["expires_at"]) + ahead
        shown = tab.text("pay-by").replace("\u202f", " ").partition("in 59")[0]
        # Without a day, also after midnight: a second line would move all below it.
        assert shown == "Pay by " + f"{until:%I:%M %p}".lstrip("0"), zone
    tab.click("#unfold")
    tab.click("#unit")
    assert tab.text("unit") == "Show BTC"
    assert tab.text("send") == "Send 41,667 satoshis"
    counter.pay(invoice, 20_000)
    tab.pass_time(3)
    assert "20,000 satoshis arrived" in tab.text("announce")
    assert tab.text("send") == "Send 21,667 satoshis"
    tab.click("#unit")  # its fold is open in the new content, too
    assert tab.text("send") == "Send 0.00021667 BTC"


def test_a_persian_receipt_counts_years_as_the_merchants_pages_do(open_tab, counter):
    invoice = counter.invoice()
    counter.pay(invoice)
    counter.mine()
    tab = open_tab(counter.root)
    tab.go(f"{counter.page(invoice)}?lang=fa")
    tab.until("document.documentElement.classList.contains('js')")
    shown = tab.ask("document.querySelector('time[data-local=at]').textContent")
    assert formats.date_of(to_ms(counter.clock()), "fa", UTC)[-4:] in shown


WAITING = {one: catalog(one).gettext("Waiting for your payment") for one in LANGUAGES}


@pytest.mark.parametrize("language", WAITING)
def test_the_page_speaks_the_browsers_language_also_when_it_changes(
    open_tab, counter, language
):
    invoice = counter.invoice()
    tab = show(open_tab, counter, invoice, language=language)
    assert tab.ask("document.documentElement.lang") == language
    assert tab.text("state") == WAITING[language]
    counter.pay(invoice)
    tab.pass_time(3)
    assert tab.text("confirmations")
    assert tab.ask("document.querySelector('footer [aria-current]').lang") == language
    assert tab.text("announce").startswith(tab.text("state"))
    assert (tab.text("state") == "Payment seen") is (language == "en")
