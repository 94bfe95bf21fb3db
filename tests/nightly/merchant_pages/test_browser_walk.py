"""A person with one link and a phone: from an empty shop to the month's file, nothing else."""

import csv
import re
from base64 import b64decode
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from browser import Tab
from builders import until
from hosted import Counter, open_counter
from merchant_browser import log_in
from PIL import Image

from btcpay.sandbox.payer.misbehave import replace

SALES = ("4.20", "12.50", "30.00")  # the last one is taken back
BILL = "250.00"


class Walk:
    """What the person does, page by page; each must fit the phone."""

    def __init__(self, tab: Tab, counter: Counter, has_script: bool) -> None:
        self.tab, self.counter, self.has_script = tab, counter, has_script

    def press(self, selector: str, then: str) -> None:
        """Presses something, and waits for the page that comes, on which `then` is true."""
        self.tab.ask("document.documentElement.dataset.left = 'yes'")
        self.tab.click(selector)
        self.tab.until(f"!document.documentElement.dataset.left && {then}")
        assert self.tab.ask("document.documentElement.scrollWidth <= innerWidth"), selector

    def fill(self, id: str, text: str) -> None:
        self.tab.ask(f"document.getElementById('{id}').select()")
        self.tab.click(f"#{id}")
        self.tab.ask(f"document.getElementById('{id}').value = ''")
        self.tab.type(text)

    def choose(self, id: str, value: str) -> None:
        """Of a list, or a colour."""
        self.tab.ask(
            f"(it => {{ it.value = '{value}'; it.dispatchEvent(new Event('input')) }})"
            f"(document.getElementById('{id}'))"
        )

    def save(self, part: str) -> None:
        self.press(f"#{part} .button:not(p)", "document.querySelector('[role=status]')")

    def id(self) -> str:
        return self.tab.ask("location.pathname.split('/').pop()")

    def state(self, state: str) -> None:
        """The page says so by itself, or once it is loaded again, as it does every five seconds."""
        if not self.has_script:
            self.tab.go(self.tab.ask("location.href"))
        self.tab.until_state(state)


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without"])
def walk(request, browser, ticker, tmp_path):
    folder, has_script = tmp_path / "shop", request.param
    folder.mkdir()
    with open_counter(folder, ticker, BTCPAY_MERCHANT_PAGES="on") as counter:
        ticker.price("60000.00", eur="50000.00")
        with closing(browser.open(counter.root, script=has_script)) as tab:
            yield Walk(tab, counter, has_script)
        assert tab.strangers + tab.complaints == []


def look(walk: Walk, folder: Path) -> None:
    """Name, colour and logo, shown before they are saved."""
    tab, logo = walk.tab, folder / "logo.png"
    Image.new("RGB", (40, 20), "#0b7a4b").save(logo)
    walk.press("#own a", "document.getElementById('look')")
    walk.fill("name", "Harbour Roasters")
    walk.choose("accent", "#0b7a4b")
    if not walk.has_script:
        walk.press("#look [name=show]", "document.querySelector('#preview-words').textContent")
    assert tab.ask("document.querySelector('#preview .seller').innerText") == "Harbour Roasters"
    button = "getComputedStyle(document.querySelector('#preview .button'))"
    assert tab.ask(f"{button}.backgroundColor") == "rgb(11, 122, 75)"
    walk.save("look")
    chosen = tab.call("Runtime.evaluate", expression="document.getElementById('logo-file')")
    tab.call("DOM.setFileInputFiles", files=[str(logo)], objectId=chosen["result"]["objectId"])
    if walk.has_script:
        tab.until("!document.querySelector('#preview canvas').hidden")
    walk.press("#logo-form button", "document.querySelector('#preview img')")
    assert tab.ask("document.querySelector('#preview img').naturalWidth") == 40


def settle_in(walk: Walk) -> None:
    walk.choose("currency", "EUR")
    walk.choose("timezone", "Europe/Berlin")
    walk.save("counting")
    walk.fill("address", "owner@example.com")
    walk.save("mail")
    shown = "Object.fromEntries(new FormData(document.querySelector('#{} form')))"
    assert walk.tab.ask(shown.format("counting"))["currency"] == "EUR"
    assert walk.tab.ask(shown.format("mail"))["address"] == "owner@example.com"


def sell(walk: Walk, amount: str) -> str:
    """Shows a code at the till, which is paid; the payment's txid."""
    walk.fill("amount", amount)
    walk.press("#show", "document.getElementById('qr')")
    invoice = walk.counter.shop.get(f"/invoices/{walk.id()}").json
    assert walk.tab.qr().text.startswith(f"bitcoin:{invoice['deposit_address']}?amount=")
    txid = walk.counter.pay(invoice)
    walk.state("seen")
    return txid


def take_back(walk: Walk, txid: str) -> None:
    till, id = walk.counter.till, walk.id()
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for({"id": id})
    walk.state("waiting")
    assert walk.tab.text("state") == "The payment was taken back"


def bill(walk: Walk) -> None:
    """An invoice for somebody far away, who pays on its page."""
    walk.press("#sections a[href*=invoices]", "document.querySelector('a[href*=\"/new\"]')")
    walk.press("a[href*='/new']", "document.getElementById('new-invoice')")
    for id, text in {
        "amount": BILL,
        "description": "Forty cups",
        "reference": "2026-17",
        "email": "ada@example.com",
    }.items():
        walk.fill(id, text)
    walk.press("#make", "document.querySelector('[role=status]')")
    page = f"{walk.counter.root}/pay/{walk.id()}"
    assert page.split("/", 3)[3] in walk.tab.ask("document.getElementById('main').innerHTML")
    walk.counter.pay(walk.counter.shop.get(f"/invoices/{walk.id()}").json)


def card(walk: Walk) -> None:
    tab = walk.tab
    walk.press("#sections a[href*=links]", "document.querySelector('a[href*=\"/new\"]')")
    walk.press("a[href*='/new']", "document.getElementById('new-link')")
    walk.fill("title", "Tip jar")
    walk.press("#make", "document.getElementById('url')")
    url = tab.text("url")
    walk.press("a[href*='/card']", "document.getElementById('card')")
    tab.emulate(media="print", script=walk.has_script)
    assert tab.qr().text == url
    pdf = b64decode(tab.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    tab.emulate(script=walk.has_script)
    walk.press("#main .actions a", "document.getElementById('used')")


def month(walk: Walk, folder: Path) -> list[dict[str, Any]]:
    """The month's payments, as the file that the phone keeps has them."""
    tab = walk.tab
    walk.press("#sections a[href*=month]", "document.getElementById('csv')")
    tab.keep_files(folder)
    tab.click("#csv")
    until(lambda: list(folder.glob("*.csv")), "the file")
    (file,) = folder.glob("*.csv")
    with file.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def test_a_person_with_one_link_and_a_phone_runs_a_shop(walk, tmp_path):
    tab = log_in(walk.tab, walk.counter)
    look(walk, tmp_path)
    settle_in(walk)
    walk.press("#sections a[href*=till]", "document.getElementById('till')")
    for amount in SALES:
        txid = sell(walk, amount)
        if amount == SALES[-1]:
            take_back(walk, txid)
        walk.press("#next", "document.getElementById('till')")
    assert amount in tab.text("alarms")  # in red, until it is dealt with
    bill(walk)
    walk.counter.mine()
    card(walk)
    rows = month(walk, tmp_path)
    values = sorted(Decimal(row["value_at_receipt"]) for row in rows)
    sold = sorted(Decimal(one) for one in (*SALES[:2], BILL))
    assert [round(value, 2) for value in values] == sold
    assert {row["currency"] for row in rows} == {"EUR"}
    assert f"{sum(sold):,.2f}" in tab.ask("document.querySelector('.tiles').innerText")
    assert sum("2026-17" in row.values() for row in rows) == 1
