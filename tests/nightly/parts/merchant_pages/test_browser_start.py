"""From the printed link to the first payment at the till, on a phone, without a shell."""

import re

import pytest

from tests.support.builders import Clock, Live, new_xpub, open_shop
from tests.support.fake_esplora import OWN_EXPLORER, Till, serving_sandbox


@pytest.fixture
def till(tmp_path, ticker):
    clock = Clock()
    with serving_sandbox(tmp_path / "chain", clock) as (sandbox, chain):
        environ = {"BLOCKTILL_EXPLORERS": chain} | OWN_EXPLORER
        with open_shop(tmp_path, ticker.url, clock, empty=True, **environ) as shop:
            yield Till(shop, sandbox, clock)


def test_the_link_makes_a_shop_that_is_paid_at_its_till(till, tmp_path, open_tab):
    with Live(till.shop, tmp_path, words=("run", "--every", "1")) as live:
        path = re.search(r"^To begin, open http://[^/]+(/\S+)$", live.log(), re.M)[1]
        tab = open_tab(live.url, size=(390, 664))
        tab.call("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
        tab.go(f"{live.url}{path}")
        assert tab.ask("document.getElementById('timezone').value") == "Asia/Tokyo"
        for name, text in (("name", "Harbour Roasters"), ("key", new_xpub())):
            tab.ask(f"document.getElementById('{name}').focus()")
            tab.type(text)
        tab.click("#continue")
        tab.until("document.getElementById('same')")
        tab.click("#same")
        tab.until("document.getElementById('to-do')")
        tab.click("#to-do a[href*='/till']")
        tab.until("document.getElementById('keypad')")
        for key in "25":
            tab.click(f"#keypad [data-key='{key}']")
        tab.click("#show")
        tab.until("document.getElementById('qr')")
        code = tab.qr().text
        address, amount = re.fullmatch(
            r"bitcoin:(\w+)\?amount=([0-9.]+)", code
        ).groups()
        till.sandbox.wallet.pay(address, round(float(amount) * 1e8), till.now)
        tab.until_state("seen")
        till.mine()
        tab.until_state("paid")


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
        tab.fill(name="Harbour Roasters", key=new_xpub())
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
