"""The pages of bills in a real browser: they fit, in both themes, and axe-core finds nothing."""

import pytest

from tests.support.axe import axe_script, look
from tests.support.bills import new_bill, pay_now
from tests.support.browser import DESK, SMALL
from tests.support.merchant_browser import log_in

LONG = "Two bags of coffee and a word without end: " + "Kaffee" * 20


@pytest.fixture(scope="module")
def bills(counter):
    """One of each kind: half paid, on its way, overdue, ended, of a series, with long words."""
    shop = counter.shop
    till = counter.till
    half = new_bill(shop, "250", description=LONG, reference="2026-" + "W" * 60)
    till.confirm(invoice := pay_now(shop, half), invoice["amount_sats"] // 2)
    series = new_bill(
        shop, every="month", customer_email="ada@example.com", description="Rent"
    )
    counter.pay(pay_now(shop, series))
    late = new_bill(shop, due_days=0)
    shop.sql(f"UPDATE bill SET due_ms = created_ms - 1 WHERE id = '{late.id}'")  # noqa: S608
    return [half, series, late]


@pytest.mark.parametrize("language", ["en", "ar"])
def test_every_page_of_bills_fits_in_both_themes_and_axe_finds_nothing(
    open_tab, counter, bills, language
):
    tab = log_in(open_tab(counter.root), counter)
    axe = axe_script()
    found = []
    ids = [bill.id for bill in bills]
    paths = [f"/bill/{id}" for id in ids] + [f"/merchant/bills/{id}" for id in ids]
    for path in (
        "/merchant/bills",
        "/merchant/bills/new",
        f"/bill/{ids[1]}/stop",
        *paths,
    ):
        assert tab.go(f"{counter.root}{path}?lang={language}") == 200
        tab.until("document.getElementById('main')")
        found += [(path, fault) for fault in look(tab, axe, (DESK, SMALL))]
    assert found == []


def test_without_a_script_a_bill_is_paid_and_its_series_ended(open_tab, counter, bills):
    tab = open_tab(counter.root, script=False)
    bill = new_bill(counter.shop, every="week")
    tab.go(f"{counter.root}/bill/{bill.id}")
    tab.click("#submit")
    tab.until("document.getElementById('address')")
    tab.go(f"{counter.root}/bill/{bill.id}/stop")
    tab.click("#end button")
    tab.until("!document.getElementById('end')")
    assert "have ended" in tab.ask("document.body.innerText")


@pytest.mark.parametrize(
    "script", [True, False], ids=["with a script", "without a script"]
)
def test_a_bill_is_three_taps_and_its_fields(open_tab, counter, script):
    tab = log_in(open_tab(counter.root, size=(375, 553), script=script), counter)
    tab.click("#sections a[href$=bills]")
    tab.until("document.getElementById('new')")
    tab.click("#new")
    tab.until("document.getElementById('amount')")
    tab.click("#amount")
    tab.type("25")
    tab.click("#make")
    tab.until("document.getElementById('mail')")
    assert "$25.00" in tab.ask("document.body.innerText")
