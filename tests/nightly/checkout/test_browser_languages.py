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
