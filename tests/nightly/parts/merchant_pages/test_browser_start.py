"""From the printed link to the first payment at the till, on a phone, without a shell."""

import json
import re

import pytest

from btcpay.values.networks import NETWORKS
from storage.queries import merchants
from tests.support.accounts import descriptor_of
from tests.support.axe import axe_script, faults, misfits
from tests.support.browser import LETS_USE_CAMERA, SMALL, Browser
from tests.support.builders import Clock, Live, new_xpub, open_shop
from tests.support.fake_esplora import OWN_EXPLORER, Till, serving_sandbox


@pytest.fixture
def till(tmp_path, ticker):
    clock = Clock()
    with serving_sandbox(tmp_path / "chain", clock) as (sandbox, chain):
        environ = {"BLOCKTILL_EXPLORERS": chain} | OWN_EXPLORER
        with open_shop(tmp_path, ticker.url, clock, empty=True, **environ) as shop:
            yield Till(shop, sandbox, clock)


class Taps:
    """A tab of which each press is counted: of a field, button or link, a key of the keypad."""

    def __init__(self, tab):
        self.tab = tab
        self.count = 0

    def on(self, selector, then):
        self.tab.click(selector)
        self.tab.until(then)
        self.count += 1


def printed_link(live):
    return re.search(r"^To begin, open http://[^/]+(/\S+)$", live.log(), re.M)[1]


def is_there(id):
    return f"document.getElementById('{id}')"


def pay_what_is_shown(tab, till):
    """Pays the code on the screen, and waits for the till to say so."""
    code = tab.qr().text
    address, amount = re.fullmatch(r"bitcoin:(\w+)\?amount=([0-9.]+)", code).groups()
    till.sandbox.wallet.pay(address, round(float(amount) * 1e8), till.now)
    tab.until_state("seen")
    till.mine()
    tab.until_state("paid")


# The wallet's text, whether it leaves the kind of addresses open, the amount, the taps.
FIRST_SALES = {
    "a descriptor": (descriptor_of("p2wpkh"), False, "8.40", 12),
    "a key that leaves its kind open": (new_xpub(), True, "25", 11),
}


@pytest.mark.parametrize("case", FIRST_SALES)
def test_the_first_sale_of_a_new_shop_is_twelve_taps_and_one_paste(
    case, till, tmp_path, open_tab
):
    """From the printed link to the code that the customer pays, on a phone.

    Every press is a tap: of a field before something is put into it, of a button, of a
    link, and of each key of the till's keypad. The name is typed on the phone's own
    keyboard, whose keys are not counted; the wallet's text is one paste.
    """
    text, is_open, amount, most = FIRST_SALES[case]
    with Live(till.shop, tmp_path, words=("run", "--every", "1")) as live:
        tab = open_tab(live.url, size=(390, 664))
        tab.call("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
        tab.go(f"{live.url}{printed_link(live)}")
        assert tab.ask("document.getElementById('timezone').value") == "Asia/Tokyo"
        taps = Taps(tab)
        taps.on("#name", "document.activeElement.id === 'name'")
        tab.type("Harbour Roasters")
        taps.on("#continue", is_there("wallets"))
        taps.on(
            "label[for=wallet-11]",
            "document.getElementById('menu-11').checkVisibility()",
        )
        assert "Settings › Export › Output Descriptor" in tab.text("menu-11")
        taps.on("#key", "document.activeElement.id === 'key'")
        tab.insert(text)
        taps.on("#continue", is_there("scripts" if is_open else "same"))
        if is_open:
            taps.on("#scripts [value=p2wpkh]", is_there("same"))
        taps.on("#same", is_there("to-do"))
        taps.on("#to-do a[href*='/till']", is_there("keypad"))
        for key in amount:
            taps.on(f"#keypad [data-key='{key}']", is_there("keypad"))
        taps.on("#show", is_there("qr"))
        assert taps.count == most <= 12
        pay_what_is_shown(tab, till)


def test_a_double_click_on_the_last_button_lands_in_the_shop(till, tmp_path, open_tab):
    with Live(till.shop, tmp_path, words=("run",)) as live:
        tab = open_tab(live.url)
        tab.go(f"{live.url}{printed_link(live)}")
        tab.fill(name="Harbour Roasters")
        tab.click("#continue")
        tab.until(is_there("key"))
        tab.fill(key=descriptor_of("p2wpkh"))
        tab.click("#continue")
        tab.until(is_there("same"))
        tab.ask(
            "const button = document.getElementById('same'); button.click(); button.click()"
        )
        tab.until(is_there("to-do"))
        assert tab.status == 200 and len(till.shop.service.db.rows(merchants.ALL)) == 1


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_each_step_fits_a_small_phone_and_axe_finds_nothing(
    script, till, tmp_path, open_tab
):
    several = json.dumps({"till": {"xpub": new_xpub()}, "web": {"xpub": new_xpub()}})
    foreign = new_xpub(NETWORKS["mainnet"])
    (tmp_path / "wallet.json").write_text(several, encoding="utf-8")
    with Live(till.shop, tmp_path, words=("run",)) as live:
        tab = open_tab(live.url, size=SMALL, script=script)

        def look():
            if script:
                assert faults(tab, axe_script()) == []
            assert misfits(tab, SMALL[0]) == []

        def step(selector, there):
            tab.click(selector)
            tab.until(is_there(there))
            look()

        tab.go(f"{live.url}{printed_link(live)}")
        step("#continue", "name-problem")
        tab.fill(name="Harbour Roasters")
        step("#continue", "wallets")
        tab.click("label[for=wallet-7]")
        assert tab.is_shown("menu-7") and not tab.is_shown("menu-11")
        look()
        tab.fill(key=foreign)
        step("#continue", "problem")
        assert "this shop is a test shop" in tab.text("problem")
        assert tab.ask("document.getElementById('key').value") == foreign
        tab.choose_file("#file", tmp_path / "wallet.json")
        step("#continue", "accounts")
        tab.click("#accounts input[value=web]")
        step("#choose", "scripts")
        step("#scripts [value=p2pkh]", "same")
        step("[name=differ]", "differed")
        tab.click("#continue")
        tab.until(is_there("accounts"))
        assert tab.complaints == [] and tab.strangers == []


# Chromium on Linux has no BarcodeDetector: this stands in for that of a phone. It reads
# nothing in the first two pictures that the camera shows, and a text in the third.
DETECTOR = """
    window.BarcodeDetector = class {
        static getSupportedFormats() { return Promise.resolve(["qr_code"]); }
        seen = 0;
        detect(video) {
            if (!video.videoWidth || video.paused) return Promise.reject(new Error("no picture"));
            this.seen += 1;
            return Promise.resolve(this.seen < 3 ? [] : [{rawValue: "%s"}]);
        }
    };
"""


def to_the_wallet(tab, live):
    tab.go(f"{live.url}{printed_link(live)}")
    tab.fill(name="Harbour Roasters")
    tab.click("#continue")
    tab.until(is_there("key"))


def test_the_camera_fills_in_the_text_where_the_browser_reads_codes(
    till, tmp_path, tmp_path_factory
):
    """With a stand-in for the detector, and Chromium's own camera of a test picture."""
    descriptor = descriptor_of("p2wpkh")
    folder = tmp_path_factory.mktemp("chromium")
    with (
        Live(till.shop, tmp_path, words=("run",)) as live,
        Browser(folder, LETS_USE_CAMERA) as browser,
    ):
        tab = browser.open(live.url)
        tab.run_first(DETECTOR % descriptor)
        to_the_wallet(tab, live)
        tab.until("document.getElementById('scan').checkVisibility()")
        tab.click("#scan")
        tab.until(f"document.getElementById('key').value === {json.dumps(descriptor)}")
        assert not tab.is_shown("seen") and tab.text("announce") == "The code was read."
        assert tab.ask("document.getElementById('seen').srcObject") is None
        assert faults(tab, axe_script()) == [] and tab.complaints == []
        tab.click("#continue")
        tab.until(is_there("same"))
        # No other page of the service gets the camera, although the browser granted it.
        asked = "navigator.mediaDevices.getUserMedia({video: true})"
        assert tab.ask(f"{asked}.catch(({{name}}) => name)") == "NotAllowedError"
        assert all("permissions policy" in text.lower() for text in tab.complaints)
        assert tab.strangers == []


def test_a_camera_that_is_refused_is_said_and_the_button_stays(
    till, tmp_path, open_tab
):
    with Live(till.shop, tmp_path, words=("run",)) as live:
        tab = open_tab(live.url)
        tab.run_first(DETECTOR % "")
        to_the_wallet(tab, live)
        tab.until("document.getElementById('scan').checkVisibility()")
        tab.click("#scan")
        tab.until("document.getElementById('camera-problem').checkVisibility()")
        assert tab.text("camera-problem") == "The camera cannot be used."
        assert tab.text("scan") == "Scan with the camera"


def test_no_camera_is_offered_where_the_browser_reads_no_codes(
    till, tmp_path, open_tab
):
    """This Chromium has no BarcodeDetector."""
    with Live(till.shop, tmp_path, words=("run",)) as live:
        tab = open_tab(live.url)
        to_the_wallet(tab, live)
        assert tab.ask("'BarcodeDetector' in window") is False
        assert not tab.is_shown("scan")


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(
    till, tmp_path, open_tab
):
    (tmp_path / "photo.jpg").write_bytes(bytes(400_001))
    (tmp_path / "wallet.txt").write_text(descriptor_of("p2wpkh"), encoding="utf-8")
    with Live(till.shop, tmp_path, words=("run",)) as live:
        tab = open_tab(live.url)
        to_the_wallet(tab, live)
        tab.choose_file("#file", tmp_path / "photo.jpg")
        tab.until("document.getElementById('file-problem').checkVisibility()")
        assert tab.ask("document.getElementById('file').files.length") == 0
        tab.choose_file("#file", tmp_path / "wallet.txt")
        tab.until("!document.getElementById('file-problem').checkVisibility()")
        tab.click("#continue")
        tab.until(is_there("same"))


def test_by_the_owners_password_a_phone_makes_the_shop_and_comes_back_to_it(
    till, tmp_path, open_tab
):
    password = "Harbour pilots sleep late"
    with Live(
        till.shop, tmp_path, words=("run",), BLOCKTILL_OWNER_PASSWORD=password
    ) as live:
        assert "/merchant/start/" not in live.log()
        tab = open_tab(live.url, size=(390, 844))
        tab.go(f"{live.url}/merchant")
        tab.fill(password="not that one")
        tab.click("#log-in")
        tab.until("document.getElementById('password-problem')")
        tab.fill(password=password)
        tab.click("#log-in")
        tab.until("document.getElementById('continue')")
        assert password not in tab.ask("location.href")
        tab.fill(name="Harbour Roasters")
        tab.click("#continue")
        tab.until("document.getElementById('key')")
        tab.fill(key=descriptor_of("p2wpkh"))
        tab.click("#continue")
        tab.until("document.getElementById('same')")
        tab.click("#same")
        tab.until("document.getElementById('to-do')")
        # A lost cookie: the page that was asked for is shown after the login.
        tab.call("Network.clearBrowserCookies")
        tab.go(f"{live.url}/merchant/settings")
        tab.fill(password=password)
        tab.click("#log-in")
        tab.until("location.pathname === '/merchant/settings'")
        assert password not in live.log()
