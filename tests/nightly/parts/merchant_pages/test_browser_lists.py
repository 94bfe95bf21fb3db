"""Lists on a phone, in a real browser: what is seen at first sight, and in how many taps."""

import re
import subprocess
from datetime import timedelta
from urllib.parse import unquote

import pytest

from btcpay.values.times import number_of
from tests.support.browser import A4, LETTER
from tests.support.merchant_browser import log_in
from tests.support.programs import tool

# Rows of a list, but for the headings of days, that stand whole above the bar with the sections.
SEEN = """(() => {
    const bar = document.getElementById('sections').getBoundingClientRect().top;
    return [...document.querySelectorAll('.list tbody tr:not(.day)')]
        .filter((row) => row.getBoundingClientRect().bottom <= bar).length;
})()"""

GLASS = """(() => {
    const { x, y } = document.querySelector('.find summary').getBoundingClientRect();
    return [x, y];
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


@pytest.mark.parametrize(
    "script", [True, False], ids=["with a script", "without a script"]
)
def test_yesterdays_order_is_two_taps_away(open_tab, counter, busy, script):
    tab = log_in(open_tab(counter.root, size=(375, 553), script=script), counter)
    tab.click("#yesterday")
    tab.until(f"document.querySelector('.list a[href*={busy}]')")
    tab.click(f".list a[href*={busy}]")
    tab.until("document.getElementById('how-far')")


def test_the_search_of_a_phone_unfolds_without_a_script(open_tab, counter, busy):
    tab = log_in(open_tab(counter.root, size=(375, 553), script=False), counter)
    tab.go(f"{counter.root}/merchant/invoices")
    tab.until("document.querySelector('.find')")
    at_first = tab.ask(GLASS)
    tab.click(".find summary")
    tab.until("document.querySelector('.find[open] input')")
    assert tab.ask(GLASS) == at_first  # it stays under the thumb that pressed it
    assert not tab.ask("document.querySelector('.head .button').checkVisibility()")
    tab.click(".find input[type=search]")
    tab.type("Yesterday's")
    tab.press("Enter")
    tab.until("document.querySelector('.find[open]')")
    tab.until(f"document.querySelector('.list a[href*={busy}]')")


@pytest.mark.parametrize(
    "script", [True, False], ids=["with a script", "without a script"]
)
def test_last_month_is_four_taps_from_the_accountant(open_tab, counter, busy, script):
    """The last is the mail, or the share sheet where the browser has one."""
    last_of_month = counter.shop.clock().date().replace(day=1) - timedelta(days=1)
    counter.shop.sql(
        f"INSERT INTO merchant_day VALUES (1, 'USD', {number_of(last_of_month)}, 1, 0, 2500, 41667)"  # noqa: S608
        " ON CONFLICT DO NOTHING"
    )
    tab = log_in(open_tab(counter.root, size=(375, 553), script=script), counter)
    tab.click("#more-tab")
    tab.until("document.getElementById('more-sections')")
    tab.click("#more-sections a[href$=month]")
    tab.until("document.getElementById('send')")
    assert tab.text("send").startswith("Send ")
    tab.click("#send")
    tab.until("document.getElementById('linked')")
    mail = unquote(tab.ask("document.getElementById('mail').href"))
    (path,) = re.findall(r"/file/\w+", mail)
    opened = f"fetch({path!r}, {{credentials: 'omit'}}).then((answer) => answer.status)"
    assert tab.ask(opened) == 200


@pytest.mark.parametrize("paper", [A4, LETTER], ids=["A4", "Letter"])
def test_a_printed_month_says_whose_it_is_and_fits_one_sheet(
    open_tab, new_counter, tmp_path, paper
):
    """Of a month with takings on each of its 31 days, in two languages."""
    shop = new_counter.shop
    shop.sql("UPDATE merchant SET timezone = 'Europe/Berlin', currency = 'EUR'")
    shop.sql("INSERT INTO brand (merchant_id, name) VALUES (1, 'Caf\u00e9 \u00dcnder')")
    for day in range(20_362, 20_362 + 31):  # October 2025
        shop.sql(
            f"INSERT INTO merchant_day VALUES (1, 'EUR', {day}, 2, 0, 50000, 412{day % 90 + 10})"  # noqa: S608
        )
    for language, says in {
        "en": "October 2025, Caf\u00e9 \u00dcnder, EUR, Europe/Berlin, 62 payments, Oct 31",
        "ar": "Caf\u00e9 \u00dcnder, EUR, Europe/Berlin, 0.01550000",
    }.items():
        tab = log_in(open_tab(new_counter.root), new_counter)
        tab.go(f"{new_counter.root}/merchant/month?month=2025-10&lang={language}")
        tab.until("document.querySelector('.chart')")
        assert tab.paper_pages(paper) == 1, language
        (tmp_path / "month.pdf").write_bytes(tab.paper(paper))
        read = [tool("pdftotext"), "-layout", tmp_path / "month.pdf", "-"]
        text = subprocess.run(read, capture_output=True, text=True, check=True).stdout
        assert [words for words in says.split(", ") if words not in text] == [], (
            language
        )
        assert "Print" not in text and "accountant" not in text
