"""One link and a phone: a person sets up a shop and runs it for a day; and a card's code."""

import csv

from PIL import Image

from btcpay.sandbox.payer.wallet import replace
from tests.support.browser import DESK, PHONE
from tests.support.builders import until
from tests.support.merchant_browser import log_in

VISIBLE = (390, 664)  # the height that a phone's browser leaves
ACCENT = "#c0397f"
PREVIEW = """(() => {
    const it = document.getElementById('preview'), canvas = it.querySelector('canvas');
    const logo = canvas.hidden ? it.querySelector('img')?.naturalWidth : canvas.width;
    return it.checkVisibility() && logo === 40
        && it.querySelector('.seller').textContent === 'Café Ünder'
        && it.querySelector('.contact').textContent === '+49 30 1234567'
        && getComputedStyle(it.querySelector('.button')).backgroundColor === 'rgb(192, 57, 127)';
})()"""
MIDDLE = """(() => {
    const code = document.querySelector('#qr svg').getBoundingClientRect();
    const card = document.querySelector('#card').getBoundingClientRect();
    return [code.x + code.width / 2 - card.x - card.width / 2, code.width];
})()"""
TEN_CM = 10 / 2.54 * 96  # in pixels of a style sheet


class Walk:
    """Taps, types and looks, logged in; in `counter` nothing was done, its price is in euros."""

    def __init__(self, tab, counter):
        self.tab = log_in(tab, counter)
        self.counter = counter
        tab.call("Emulation.setTouchEmulationEnabled", enabled=True)

    def tap(self, selector, then):
        """Taps what leads to another page, and waits for what that one has."""
        self.tab.ask("window.isOld = true")
        self.tab.click(selector)
        self.tab.until(f"!window.isOld && document.querySelector({then!r})")

    def section(self, name, then):
        """Opens a page by the menu: on a phone a tab, or an item below More."""
        link = f"a[href$='/{name}']"
        is_tab = self.tab.ask(
            f"document.querySelector(`#sections {link}`).offsetHeight"
        )
        if is_tab:
            self.tap(f"#sections {link}", then)
            return
        self.tap("#more-tab", "#more-sections")
        self.tap(f"#more-sections {link}", then)

    def settings(self, name):
        """Opens a page of the settings from the list of them."""
        self.section("settings", ".pages")
        self.tap(f".pages a[href$='/settings/{name}']", "#save")

    def save(self):
        """Presses Save, beside which the page then says so, where one sees it."""
        self.tap("#save .button", "#save .saved")
        assert self.tab.ask(
            "document.querySelector('.saved').getBoundingClientRect().bottom < innerHeight"
        )

    def write(self, selector, text):
        self.tab.click(selector)
        self.tab.until(
            f"document.activeElement === document.querySelector({selector!r})"
        )
        self.tab.type(text)

    def choose(self, id, value):
        """In what the system opens for a list or a colour, which belongs to no page."""
        self.tab.ask(f"document.getElementById({id!r}).value = {value!r}")
        self.tab.ask(
            f"document.getElementById({id!r}).dispatchEvent(new Event('input'))"
        )

    def show_code(self, amount):
        """The invoice of a sale, whose page is shown."""
        self.write("#amount", amount)
        self.tap("#show", "#qr")
        id = self.tab.ask("location.pathname.split('/').pop()")
        return self.counter.shop.get(f"/invoices/{id}").json


def test_a_day_of_a_shop_by_one_link_and_a_phone(new_counter, open_tab, tmp_path):
    """With a script its parts are in tests/trips/test_browser.py and test_browser_till.py."""
    walk = Walk(open_tab(new_counter.root, size=VISIBLE, script=False), new_counter)
    set_up(walk, tmp_path / "logo.png", script=False)
    sold = sell_three(walk)
    walk.tab.click("#for-cashier summary")
    walk.tap("#details", "#sections")
    print_a_card(walk)
    assert sorted(download(walk, tmp_path / "downloads")) == sorted(
        (id, "25.00") for id in sold
    )


def test_a_shop_is_set_up_while_a_script_shows_what_is_typed(
    new_counter, open_tab, tmp_path
):
    walk = Walk(open_tab(new_counter.root, size=VISIBLE), new_counter)
    set_up(walk, tmp_path / "logo.png", script=True)


def test_a_logo_of_any_size_is_made_small_enough(new_counter, open_tab, tmp_path):
    """Noise, which no format makes small, larger than a form may be."""
    logo = tmp_path / "logo.png"
    Image.effect_noise((1500, 1200), 90).convert("RGB").save(logo)
    assert logo.stat().st_size > 1_000_000
    walk = Walk(open_tab(new_counter.root, size=VISIBLE), new_counter)
    walk.settings("look")
    walk.tab.choose_file("#logo-file", logo)
    walk.tab.until("document.getElementById('logo-file').files[0].size <= 65536")
    walk.save()
    (size,) = new_counter.shop.sql("SELECT LENGTH(logo) FROM brand").fetchone()
    assert 1_000 < size <= 65_536


def set_up(walk, logo, script):
    tab = walk.tab
    Image.new("RGB", (40, 20), ACCENT).save(logo)
    walk.settings("look")
    walk.write("#name", "Café Ünder")
    walk.choose("accent", ACCENT)
    walk.write("#contact", "+49 30 1234567")
    tab.choose_file("#logo-file", logo)
    if script:  # the small checkout follows what is typed
        tab.until(PREVIEW)
    walk.save()
    tab.until(PREVIEW)  # what is saved is what was shown
    walk.settings("counting")
    walk.choose("currency", "EUR")
    walk.choose("timezone", "Europe/Berlin")
    walk.save()
    walk.settings("mail")
    walk.write("#address", "me@harbour-roasters.com")
    walk.save()
    walk.section("settings", ".pages")
    listed = tab.ask("document.querySelector('.pages').textContent")
    for text in ("Café Ünder", "EUR · Europe/Berlin", "me@harbour-roasters.com"):
        assert text in listed
    assert "Café Ünder" in tab.text("shop")


def sell_three(walk):
    """Two that are paid; the second one is taken back while the third is shown."""
    tab = walk.tab
    counter = walk.counter
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


def print_a_card(walk):
    tab = walk.tab
    walk.section("links", "#new")
    walk.tap("#new", "#new-link")
    walk.write("#title", "Tip jar")
    walk.tap("#make", "#url")
    url = tab.text("url")
    walk.tap(".head a[href*='/card']", "#card")
    assert tab.qr().text == url and tab.text("seller") == "Café Ünder"
    walk.tap(".actions a", "#sections")


def download(walk, folder):
    """The invoices and amounts of the spreadsheet that the browser has stored."""
    walk.section("month", "#this-EUR")
    assert "€50.00" in walk.tab.text("this-EUR") and "2 payments" in walk.tab.text(
        "this-EUR"
    )
    walk.tab.download_to(folder)
    walk.tab.click("#csv")
    until(lambda: walk.tab.ask("1") and list(folder.glob("*.csv")), "a download")
    with next(folder.glob("*.csv")).open(newline="", encoding="utf-8-sig") as file:
        return [(row["Invoice"], row["Amount"]) for row in csv.DictReader(file)]


def test_the_code_of_a_card_is_in_the_middle_and_ten_centimetres_on_paper(
    open_tab, counter
):
    link = counter.shop.link(title="Tip jar", description="Thank you " * 40)
    for size in (PHONE, DESK):
        tab = log_in(open_tab(counter.root, size=size), counter)
        tab.go(f"{counter.root}/merchant/links/{link['id']}/card")
        tab.until("document.querySelector('#qr svg')")
        assert abs(tab.ask(MIDDLE)[0]) < 1 and tab.qr().text == link["link_url"]
    tab.emulate(DESK, "dark", media="print")
    off_middle, width = tab.ask(MIDDLE)
    assert (
        abs(off_middle) < 1
        and abs(width - TEN_CM) < 3
        and tab.qr().text == link["link_url"]
    )
    assert not tab.is_shown("print") and not tab.is_shown("languages")
    assert tab.paper_pages() == 1
