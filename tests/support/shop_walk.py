"""One link and a phone: a person sets up a shop and runs it for a day, in a browser."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser import Tab
from builders import until
from hosted import Counter
from merchant_browser import log_in
from PIL import Image

from btcpay.sandbox.payer.wallet import replace

PHONE = (390, 664)  # the height that a browser leaves
ACCENT = "#c0397f"
PREVIEW = """(() => {
    const it = document.getElementById('preview'), canvas = it.querySelector('canvas');
    const logo = canvas.hidden ? it.querySelector('img')?.naturalWidth : canvas.width;
    return it.checkVisibility() && logo === 40
        && it.querySelector('.seller').textContent === 'Café Ünder'
        && it.querySelector('.contact').textContent === '+49 30 1234567'
        && getComputedStyle(it.querySelector('.button')).backgroundColor === 'rgb(192, 57, 127)';
})()"""


def play(open_tab: Callable[..., Tab], counter: Counter, folder: Path) -> None:
    """All of it, without a script; in `counter` nothing was done before, its price is in euros."""
    tab = open_tab(counter.root, size=PHONE, script=False)
    walk = Walk(log_in(tab, counter), counter)
    set_up(walk, folder / "logo.png", script=False)
    sold = sell_three(walk)
    walk.tap("#details", "#sections")
    print_a_card(walk)
    assert sorted(download(walk, folder)) == sorted((id, "25.00") for id in sold)


class Walk:
    """Taps, types and looks; knows no address but the one that it was given."""

    def __init__(self, tab: Tab, counter: Counter) -> None:
        self.tab, self.counter = tab, counter
        tab.call("Emulation.setTouchEmulationEnabled", enabled=True)

    def tap(self, selector: str, then: str) -> None:
        """Taps what leads to another page, and waits for what that one has."""
        self.tab.ask("window.isOld = true")
        self.tab.click(selector)
        self.tab.until(f"!window.isOld && document.querySelector({then!r})")

    def section(self, name: str, then: str) -> None:
        self.tap(f"#shop a[href$='/{name}']", then)

    def write(self, selector: str, text: str) -> None:
        self.tab.click(selector)
        self.tab.until(f"document.activeElement === document.querySelector({selector!r})")
        self.tab.type(text)

    def choose(self, id: str, value: str) -> None:
        """In what the system opens for a list or a colour, which belongs to no page."""
        self.tab.ask(f"document.getElementById({id!r}).value = {value!r}")
        self.tab.ask(f"document.getElementById({id!r}).dispatchEvent(new Event('input'))")

    def invoice(self) -> dict[str, Any]:
        """The one that the page shows."""
        id = self.tab.ask("location.pathname.split('/').pop()")
        return self.counter.shop.get(f"/invoices/{id}").json

    def show_code(self, amount: str) -> dict[str, Any]:
        self.write("#amount", amount)
        self.tap("#show", "#qr")
        return self.invoice()


def set_up(walk: Walk, logo: Path, script: bool) -> None:
    tab = walk.tab
    Image.new("RGB", (40, 20), ACCENT).save(logo)
    walk.section("settings", "#look")
    walk.write("#name", "Café Ünder")
    walk.choose("accent", ACCENT)
    walk.write("#contact", "+49 30 1234567")
    tab.choose_file("#logo-file", logo)
    if script:  # the small checkout follows what is typed
        tab.until(PREVIEW)
    walk.tap("#look .actions .button", ".notice[role=status]")
    tab.until(PREVIEW)  # what is saved is what was shown
    walk.choose("currency", "EUR")
    walk.choose("timezone", "Europe/Berlin")
    walk.tap("#counting .button", ".notice[role=status]:not(.wrong)")
    walk.write("#address", "me@example.com")
    walk.tap("#mail .button", ".notice[role=status]")
    ids = ("name", "accent", "contact", "currency", "timezone", "address")
    stored = [tab.ask(f"document.getElementById({id!r}).value") for id in ids]
    told = ["Café Ünder", ACCENT, "+49 30 1234567", "EUR", "Europe/Berlin", "me@example.com"]
    assert stored == told and "Café Ünder" in tab.text("shop")


def sell_three(walk: Walk) -> list[str]:
    """Two that are paid; the second one is taken back while the third is shown."""
    tab, counter = walk.tab, walk.counter
    walk.section("till", "#till")
    first = walk.show_code("25")
    assert "Café Ünder" in tab.text("brand") and tab.text("amount") == "€25.00"
    assert tab.qr().text.startswith(f"bitcoin:{first['deposit_address']}?amount=0.0005")
    counter.pay(first)
    tab.until_state("seen")  # by a refresh
    counter.mine()
    tab.until_state("paid")
    walk.tap("#next", "#till")
    lost = walk.show_code("7.50")
    txid = counter.pay(lost)
    tab.until_state("seen")
    replace(counter.till.sandbox.wallet, counter.till.now, txid, away=True)
    counter.till.look_for(lost)
    tab.until("document.getElementById('main').dataset.takenBack === 'true'")
    assert tab.text("state") == "The payment was taken back"
    walk.tap("#next", "#till")
    assert "€7.50" in tab.text("alarms")
    third = walk.show_code("25")
    assert "For the cashier" in tab.text("alarms") and "€7.50" not in tab.text("alarms")
    counter.pay(third)
    counter.mine()
    tab.until_state("paid")
    return [first["id"], third["id"]]


def print_a_card(walk: Walk) -> None:
    tab = walk.tab
    walk.section("links", "#new")
    walk.tap("#new", "#new-link")
    walk.write("#title", "Tip jar")
    walk.tap("#make", "#url")
    url = tab.text("url")
    walk.tap(".head a[href*='/card']", "#card")
    assert tab.qr().text == url and tab.text("seller") == "Café Ünder"
    walk.tap(".actions a", "#sections")


def download(walk: Walk, folder: Path) -> list[tuple[str, str]]:
    """The invoices and amounts of the spreadsheet that the browser has stored."""
    walk.section("month", "#this-EUR")
    assert "€50.00" in walk.tab.text("this-EUR") and "2 payments" in walk.tab.text("this-EUR")
    stored = folder / "downloads"
    walk.tab.download_to(stored)
    walk.tab.click("#csv")
    until(lambda: walk.tab.ask("1") and list(stored.glob("*.csv")), "a download")
    with next(stored.glob("*.csv")).open(newline="", encoding="utf-8-sig") as file:
        return [(row["Invoice"], row["Amount"]) for row in csv.DictReader(file)]
