"""Lists on a phone, in a real browser: what is seen at first sight, and in how many taps."""

import pytest
from merchant_browser import log_in

# Rows of a list, but for the headings of days, that stand whole above the bar with the sections.
SEEN = """(() => {
    const bar = document.getElementById('sections').getBoundingClientRect().top;
    return [...document.querySelectorAll('.list tbody tr:not(.day)')]
        .filter((row) => row.getBoundingClientRect().bottom <= bar).length;
})()"""


@pytest.fixture(scope="module")
def busy(counter):
    """A shop with some sales of yesterday and of today; the id of yesterday's first."""
    with counter.earlier(86_400):
        first = counter.invoice(description="Yesterday's order")
        counter.pay(first)
        counter.mine()
    for number in range(6):
        counter.pay(counter.invoice(description=f"Bags of coffee: {number}"))
    counter.mine()
    return first["id"]


def test_a_phone_shows_four_rows_at_first_sight(open_tab, counter, busy):
    for size in ((390, 664), (375, 553)):
        tab = log_in(open_tab(counter.root, size=size), counter)
        for path in ("invoices", "payments"):
            tab.go(f"{counter.root}/merchant/{path}")
            tab.until("document.querySelector('.list')")
            assert tab.ask(SEEN) >= 4, (size, path)


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without a script"])
def test_yesterdays_order_is_two_taps_away(open_tab, counter, busy, script):
    tab = log_in(open_tab(counter.root, size=(375, 553), script=script), counter)
    tab.click("#yesterday")
    tab.until(f"document.querySelector('.list a[href*={busy}]')")
    tab.click(f".list a[href*={busy}]")
    tab.until("document.getElementById('standing')")


def test_the_search_of_a_phone_unfolds_without_a_script(open_tab, counter, busy):
    tab = log_in(open_tab(counter.root, size=(375, 553), script=False), counter)
    tab.go(f"{counter.root}/merchant/invoices")
    tab.until("document.querySelector('.find')")
    tab.click(".find summary")
    tab.until("document.querySelector('.find[open] input')")
    tab.click(".find input[type=search]")
    tab.type("Yesterday's")
    tab.press("Enter")
    tab.until("document.querySelector('.find[open]')")
    tab.until(f"document.querySelector('.list a[href*={busy}]')")
