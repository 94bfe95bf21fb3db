"""A link's form in a real browser: sent by our page, by ours in a frame, by another's."""

import pytest

from btcpay.merchants.merchants import set_brand
from tests.support.builders import pay, until
from tests.support.fake_esplora import FakeEsplora, say
from tests.support.hosted import open_hosted


@pytest.fixture
def site():
    """Another site: of another port, and so of another origin."""
    with FakeEsplora() as server:
        yield server


@pytest.fixture
def hosted(tmp_path, ticker, site):
    """A shop whose pages that site may show in a frame."""
    with open_hosted(tmp_path, ticker, BLOCKTILL_FRAME_ANCESTORS=site.root) as opened:
        yield opened


@pytest.fixture
def tab(browser, hosted):
    opened = browser.open(hosted.root)
    yield opened
    opened.close()


def made(hosted):
    return len(hosted.shop.get("/invoices").json["data"])


def shows(site, html):
    page = f"<!doctype html><body>{html}</body>"
    site.instead = lambda _: say(page, **{"Content-Type": "text/html"})


@pytest.mark.parametrize("policy", ["strict-origin-when-cross-origin", "no-referrer"])
def test_a_form_of_another_site_shows_the_page_whose_button_then_pays(
    tab, hosted, site, policy
):
    link = hosted.shop.link(amount_usd=5)
    form = f'<meta name="referrer" content="{policy}"><form method="post" action="{{}}"></form>'
    shows(site, form.format(hosted.page(link)))
    tab.go(site.root)
    tab.ask("document.forms[0].submit()")
    tab.until("document.getElementById('problem')")
    assert "Another site" in tab.text("problem") and (tab.status, made(hosted)) == (
        403,
        0,
    )
    tab.click("#submit")
    tab.until("document.getElementById('qr')")
    assert made(hosted) == 1


def press_in_a_frame(tab, hosted, site, thing, done):
    """The site shows the page in a frame, whose first button is pressed until it is `done`."""
    frame = (
        f'<iframe src="{hosted.page(thing)}" style="width:100%;height:700px"></iframe>'
    )
    shows(site, f'<p id="shop">The shop</p>{frame}')
    tab.go(site.root)
    tab.until("document.querySelector('iframe')")

    def pressed():
        tab.ask("document.querySelector('iframe')?.focus()")
        tab.press("Tab", "Enter")
        return done()

    until(pressed, "the button in the frame to be pressed", every_s=0.5)


def test_a_link_in_a_frame_that_is_allowed_pays(tab, hosted, site):
    press_in_a_frame(
        tab, hosted, site, hosted.shop.link(amount_usd=5), lambda: made(hosted) > 0
    )
    assert made(hosted) == 1


def leads_back(hosted, site):
    """The site is the shop that the pages lead back to."""
    shop = hosted.shop
    (paid, unpaid) = (f"{site.root}/{kind}/" for kind in ("paid", "unpaid"))
    returns = {
        "return_paid": f"{paid}{{invoice}}",
        "return_unpaid": f"{unpaid}{{invoice}}",
    }
    set_brand(shop.service.db, shop.merchant_id, returns)
    shows(site, '<p id="shop">The shop</p>')


def test_a_page_leads_back_by_a_press_once_it_is_paid(tab, hosted, site):
    leads_back(hosted, site)
    invoice = hosted.shop.invoice()
    tab.go(hosted.page(invoice))
    assert tab.text("return") == "Back to the shop without paying"
    pay(hosted.shop, invoice)
    tab.until_state("paid")
    assert tab.text("return") == "Back to the shop" and site.asked == []
    tab.click("#return")
    tab.until("document.getElementById('shop')")
    assert site.asked[0] == f"/paid/{invoice['id']}"
    assert tab.ask("document.referrer") == ""


def test_without_a_press_it_stays_where_it_is(tab, hosted, site):
    leads_back(hosted, site)
    invoice = hosted.shop.invoice()
    tab.go(hosted.page(invoice))
    pay(hosted.shop, invoice)
    tab.until_state("paid")
    tab.pass_time(120)
    assert tab.ask("location.href") == hosted.page(invoice) and site.asked == []


def test_the_way_back_leaves_the_frame(tab, hosted, site):
    leads_back(hosted, site)
    invoice = hosted.shop.invoice()
    pay(hosted.shop, invoice)
    in_the_whole_window = f"location.pathname === '/paid/{invoice['id']}'"
    press_in_a_frame(tab, hosted, site, invoice, lambda: tab.ask(in_the_whole_window))
