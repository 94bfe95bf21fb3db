"""The first page and a sale in a real browser; tests/nightly/merchant_pages has all pages."""

import pytest
from axe import axe_script, look
from browser import DESK, PHONE
from builders import until
from hosted import open_counter
from merchant_browser import ON, log_in


@pytest.fixture
def counter(browser, tmp_path, ticker):
    with open_counter(tmp_path, ticker, **ON) as opened:
        yield opened


def test_a_merchant_logs_in_sells_and_downloads(open_tab, counter):
    tab = log_in(open_tab(counter.root), counter)
    assert look(tab, axe_script(), (PHONE, DESK)) == []
    tab.go(f"{counter.root}/merchant/till")
    tab.until("document.activeElement.id === 'amount_usd'")
    tab.type("25")
    tab.press("Enter")
    tab.until("document.getElementById('qr')")
    id = tab.ask("location.pathname.split('/').pop()")
    counter.pay(counter.shop.get(f"/invoices/{id}").json)
    tab.until_state("seen")
    counter.mine()
    tab.until_state("paid")
    tab.go(f"{counter.root}/merchant/downloads")
    for times in (1, 2):  # a form that only asks may be pressed again
        tab.click(".days button")
        until(lambda: tab.ask("1") and sent(tab) == times, "a download")  # noqa: B023


def sent(tab):
    """How many files the browser has asked for."""
    return sum("/downloads/payments" in url for url in tab.requests)
