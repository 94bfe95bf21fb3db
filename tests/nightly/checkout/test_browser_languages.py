"""Languages as a visitor meets them: the browser's own, or one that is picked and stays picked."""

import pytest
from hosted import show

from btcpay.languages.catalogs import LANGUAGES, catalog

WAITING = {one: catalog(one).gettext("Waiting for your payment") for one in LANGUAGES}


@pytest.mark.parametrize("language", WAITING)
def test_the_page_speaks_the_browsers_language_also_when_it_changes(open_tab, counter, language):
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


def test_a_language_that_is_picked_stays_from_the_link_to_the_invoice(open_tab, counter):
    tab = show(open_tab, counter, counter.shop.link(amount_usd=1234.5), language="fr")
    tab.click("#languages")
    tab.click("footer a[lang=de]")
    tab.until("document.documentElement.lang === 'de'")
    assert tab.text("amount") == "1.234,50 USD"
    tab.click("#submit")
    tab.until("document.getElementById('qr')")
    assert tab.ask("document.documentElement.lang") == "de"
    assert tab.text("state") == WAITING["de"] and tab.text("amount-btc") == "0,02057500"
    tab.click("#languages")
    tab.click("footer a[lang=ja]")
    tab.until("document.documentElement.lang === 'ja'")
    assert tab.text("state") == WAITING["ja"]
    assert tab.ask("document.querySelector('footer [aria-current]').textContent") == "日本語"
