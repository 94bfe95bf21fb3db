"""A shop of another site in a real browser: the modal, the Connect button, the way back."""

from urllib.parse import parse_qs, urlencode

import pytest
from zxingcpp import read_barcodes

from tests.support.builders import until
from tests.support.hosted import open_counter
from tests.support.merchant_browser import log_in
from tests.support.plug_in import GreenfieldShop
from tests.support.serving import Serving, say

ON = {"BLOCKTILL_GREENFIELD": "on", "BLOCKTILL_MERCHANT_PAGES": "on"}
MODAL = """<p id="shop">The shop</p><script src="{root}/modal/btcpay.js"></script><script>
    const said = [], turns = [];
    btcpay.onModalWillEnter(() => turns.push("enter"));
    btcpay.onModalWillLeave(() => turns.push("leave"));
    btcpay.onModalReceiveMessage((event) => said.push(event.data));
    btcpay.setApiUrlPrefix("{root}/");
    btcpay.showInvoice("{id}");
</script>"""


class Site(Serving):
    """A shop's pages: each says `html`; `asked` are their paths, `posted` the forms."""

    html = '<p id="shop">The shop</p>'

    def __init__(self):
        super().__init__()
        self.asked = []
        self.posted = []
        # not of the service's site, as in life
        self.url = f"http://shop.test:{self.port}"

    def answer(self, request):
        if request.path != "/favicon.ico":
            self.asked.append(request.path)
        if length := request.headers["Content-Length"]:
            self.posted.append(parse_qs(request.rfile.read(int(length)).decode()))
        return say(f"<!doctype html><body>{self.html}", **{"Content-Type": "text/html"})


@pytest.fixture
def site():
    with Site() as opened:
        yield opened


@pytest.fixture(scope="module")
def counter(browser, tmp_path_factory, ticker):
    with open_counter(tmp_path_factory.mktemp("counter"), ticker, **ON) as opened:
        yield opened


@pytest.fixture
def order(counter, site):
    """The service's invoice of a shop's order, which leads back by itself."""
    back = {
        "redirectURL": f"{site.url}/thanks?order={{InvoiceId}}",
        "redirectAutomatically": True,
    }
    made = GreenfieldShop(counter.shop, url=site.url).order(checkout=back)
    return counter.till.look(made)


@pytest.fixture
def at_shop(browser, counter, site):
    """Opens a tab that may ask the shop too."""
    opened = []

    def at_shop(**environment):
        opened.append(browser.open(counter.root, **environment))
        opened[-1].neighbours.append(site.url)
        return opened[-1]

    yield at_shop
    for tab in opened:
        tab.close()
    assert [tab.strangers for tab in opened] == [[] for _ in opened]


def codes_on(tab):
    return "".join(code.text for code in read_barcodes(tab.picture().convert("L")))


def test_the_modal_shows_the_order_says_how_it_stands_and_leaves_the_shop_in_place(
    counter, site, order, at_shop
):
    site.html = MODAL.replace("{root}", counter.root).replace("{id}", order["id"])
    tab = at_shop(size=(1280, 800))

    def says(*statuses, end=()):
        told = [{"invoiceId": order["id"], "status": status} for status in statuses]
        until(
            lambda: tab.ask("said") == ["loaded", *told, *end], f"{statuses} {end}", 40
        )

    tab.go(f"{site.url}/checkout")
    says("new")
    top = "document.querySelector('iframe').getBoundingClientRect().top"
    bottom = "document.querySelector('iframe + button').getBoundingClientRect().bottom"
    assert tab.ask(f"{top} >= {bottom}")  # the button covers nothing of the page
    until(
        lambda: order["deposit_address"] in codes_on(tab), "the code in the frame", 40
    )
    counter.pay(order)
    says("new", "paid")
    counter.mine()
    says("new", "paid", "complete")
    assert site.asked == ["/checkout"] and tab.ask("turns") == ["enter"]
    tab.press("Enter")
    says("new", "paid", "complete", end=["close"])
    assert tab.ask("turns") == ["enter", "leave"] and not tab.ask("frames.length")
    assert tab.complaints == []


def test_the_connect_button_brings_a_key_to_the_shop(counter, site, at_shop):
    asked = {
        "applicationName": "A shop",
        "redirect": f"{site.url}/connected",
        "strict": "true",
    }
    permissions = ["btcpay.store.canviewinvoices", "btcpay.store.cancreateinvoice"]
    query = urlencode(asked | {"permissions": permissions}, doseq=True)
    connect = f"{counter.root}/api-keys/authorize?{query}"
    site.html = f'<p id="shop"><a id="connect" href="{connect}">Connect</a>'
    tab = log_in(at_shop(), counter)
    tab.go(f"{site.url}/settings")
    tab.click("#connect")
    tab.until("location.pathname === '/api-keys/authorize'")
    assert tab.status == 401  # no cookie comes along from another site's page
    tab.click("main a")
    tab.until("document.getElementById('allow')")
    tab.click("#allow")
    tab.until("document.getElementById('bring')")
    tab.click("#bring")
    tab.until("location.pathname === '/connected'")
    (brought,) = site.posted
    authorization = {"Authorization": f"token {brought['apiKey'][0]}"}
    current = counter.live.ask("GET", "/api-keys/current", headers=authorization).json()
    assert current["permissions"] == brought["permissions[]"]
    assert [one.partition(":")[0] for one in brought["permissions[]"]] == permissions


def test_who_looks_is_led_back_once_it_is_paid_and_without_script_by_a_link(
    counter, site, order, at_shop
):
    looking = at_shop()
    plain = at_shop(script=False)
    for tab in (looking, plain):
        tab.go(counter.page(order))
    counter.pay(order)
    looking.until_state("seen")
    assert site.asked == []
    counter.mine()
    looking.until("document.getElementById('shop')")
    back = f"/thanks?order={order['id']}"
    assert site.asked == [back]
    plain.go(counter.page(order))
    assert plain.text("return") == "Back to the shop"
    plain.click("#return")
    plain.until("document.getElementById('shop')")
    assert plain.ask("location.href") == site.url + back
