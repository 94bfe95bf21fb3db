"""Every button of the sandbox's page, pressed over real HTTP."""

import json
import signal
import subprocess
import sys

import pytest
import requests

from btcpay.sandbox.node.script import address_of
from tests.support.browser import SMALL
from tests.support.builders import Clock, at_once, until
from tests.support.fake_esplora import ADDRESS, serving_sandbox
from tests.support.paths import PROJECT, VECTORS
from tests.support.ports import free_port

AS_JSON = {"Accept": "application/json"}


class Page:
    """A client of one running sandbox."""

    def __init__(self, root, sandbox):
        self.root = root
        self.sandbox = sandbox
        self.session = requests.Session()

    def get(self, path):
        return self.session.get(self.root + path, timeout=60)

    def press(self, button, **fields):
        url = f"{self.root}/sandbox/{button}"
        return self.session.post(url, data=fields, headers=AS_JSON, timeout=60)

    def paid_sats(self, txid):
        """The satoshis that a waiting or confirmed transaction pays to ADDRESS."""
        outputs = self.sandbox.chain.find(txid).tx.outputs
        return sum(o.value_sats for o in outputs if address_of(o.script) == ADDRESS)

    def confirmed(self, txid):
        return txid in self.sandbox.chain.ledger.confirmed

    def waits(self, txid):
        return txid in self.sandbox.chain.mempool.entries


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with serving_sandbox(tmp_path_factory.mktemp("sandbox"), Clock()) as (
        sandbox,
        root,
    ):
        yield Page(root, sandbox)


# The typed text, and the satoshis paid.
PAID = {
    "pay": [(10_001, 10_001), (294, 294)],
    "pay-short": [(10_001, 5_000), (590, 295)],
    "pay-too-much": [(10_001, 11_001), (294, 323)],
}


@pytest.mark.parametrize("button", PAID)
def test_the_pay_buttons_pay_all_half_and_a_tenth_more(page, button):
    for amount, sats in PAID[button]:
        answer = page.press(button, address=ADDRESS, amount=amount).json()
        assert answer["amount_sats"] == sats == page.paid_sats(answer["txid"])


def test_a_uri_or_an_amount_as_the_checkout_page_shows_it_is_paid(page):
    for uri, amount, sats in (
        (f"bitcoin:{ADDRESS}?amount=0.00012345", "", 12_345),
        (f"BITCOIN:{ADDRESS.upper()}?amount=0.00012345&label=a%20b", "", 12_345),
        (f"bitcoin:{ADDRESS}?amount=0.00012345", "777", 777),
        (f" bitcoin:{ADDRESS} ", "778", 778),
        (ADDRESS, "41,667", 41_667),
        (ADDRESS, "1,234,567", 1_234_567),
        (ADDRESS, "0.00041667", 41_667),
        (ADDRESS, ".5", 50_000_000),
    ):
        txid = page.press("pay", address=uri, amount=amount).json()["txid"]
        assert page.paid_sats(txid) == sats


def test_mining_confirms_what_waits(page):
    txid = page.press("pay", address=ADDRESS, amount=1_000).json()["txid"]
    height = int(page.get("/blocks/tip/height").text)
    mined = page.press("mine").json()
    assert (mined["height"], mined["hash"]) == (
        height + 1,
        page.get("/blocks/tip/hash").text,
    )
    assert page.confirmed(txid)
    assert page.press("mine", blocks=3).json()["height"] == height + 4


@pytest.mark.parametrize(("away", "sats"), [("", 1_000), ("1", 0)])
def test_replacing_bumps_the_fee_or_takes_the_money_back(page, away, sats):
    """Of the payment that is named, else of the last; when none waits it says what to do."""
    first, last = (
        page.press("pay", address=ADDRESS, amount=1_000).json()["txid"] for _ in "12"
    )
    for txid, fields in ((last, {}), (first, {"txid": first})):
        answer = page.press("replace", away=away, **fields).json()
        assert answer["replaced"] == txid != answer["txid"]
        assert not page.waits(txid) and page.paid_sats(answer["txid"]) == sats
    page.press("mine")
    assert "press pay first" in page.press("replace").json()["error"]


def test_after_a_reorganisation_a_payment_waits_and_confirms_again_or_is_gone(page):
    txid = page.press("pay", address=ADDRESS, amount=1_000).json()["txid"]
    lost = page.press("mine").json()
    answer = page.press("reorganise").json()
    assert (answer["lost"], answer["height"]) == ([lost["hash"]], lost["height"] + 1)
    assert page.waits(txid)
    page.press("mine")
    assert page.confirmed(txid)
    page.press("reorganise", depth=1, double_spend=1)
    assert not page.waits(txid) and not page.confirmed(txid)


def test_a_browser_is_sent_back_to_the_page_which_shows_the_payment(page):
    form = {"address": ADDRESS, "amount": "4321"}
    url = f"{page.root}/sandbox/pay"
    answer = page.session.post(url, data=form, allow_redirects=False, timeout=60)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    html = page.get("/").text
    assert f"Paid 4,321 sat to {ADDRESS}. It waits: mine a block." in html
    assert f"4,321 sat to <code>{ADDRESS}" in html
    for name in ("pay", "part", "too much", "mine a block", "replace", "reorganise"):
        assert f">{name}</button>" in html
    assert ">explorer down</button>" in html and ">price down</button>" in html


STRANGERS = {
    "a form of another site": {"Origin": "https://evil.example"},
    "a form of another port of this machine": {"Origin": "http://127.0.0.1:9"},
    "a page without an origin": {"Origin": "null"},
    "a frame of another site": {"Sec-Fetch-Site": "cross-site"},
    "a name that leads here": {"Host": "evil.example"},
}


@pytest.mark.parametrize("headers", STRANGERS.values(), ids=STRANGERS)
def test_what_another_site_presses_is_refused(page, headers):
    before = page.get("/blocks/tip/height").text
    for accepts in ({}, AS_JSON):
        answer = page.session.post(
            f"{page.root}/sandbox/mine", headers=headers | accepts, timeout=60
        )
        assert answer.status_code == 403
    assert page.get("/blocks/tip/height").text == before


def test_the_workbenchs_own_page_presses_and_nobody_shows_it_in_a_frame(page):
    own = {"Origin": page.root, "Sec-Fetch-Site": "same-origin"}
    assert page.session.post(f"{page.root}/sandbox/mine", headers=own, timeout=60).ok
    assert "frame-ancestors 'none'" in page.get("/").headers["Content-Security-Policy"]
    for path in ("/", "/sandbox/state"):
        asked = page.session.get(
            page.root + path, headers={"Host": "evil.example"}, timeout=60
        )
        assert asked.status_code == 403


def test_the_chain_alone_says_that_no_shop_is_there(page):
    for button, fields in (
        ("invoice", {"amount_usd": "25"}),
        ("scene", {"scene": "paid-in-time"}),
        ("pay", {"invoice": "inv_1"}),
        ("replace", {"invoice": "inv_1"}),
        ("explorer", {"state": "lies"}),
    ):
        answer = page.press(button, **fields)
        assert (answer.status_code, "no shop runs" in answer.json()["error"]) == (
            400,
            True,
        )
    assert "Scenes" not in page.get("/").text


# What is pressed, what was typed, and words of the answer.
REFUSED = json.loads((VECTORS / "sandbox_refusals.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("button", "fields", "named"), REFUSED)
def test_wrong_input_is_refused_with_a_message(page, button, fields, named):
    page.press("pay", address=ADDRESS, amount=1_000)
    answer = page.press(button, **fields)
    assert answer.status_code == 400, answer.text
    assert named in answer.json()["error"]
    shown = page.session.post(f"{page.root}/sandbox/{button}", data=fields, timeout=60)
    assert shown.status_code == 400 and 'role="alert"' in shown.text


def test_payers_at_the_same_time_do_not_spend_the_same_coin(page):
    def pay(_):
        own = Page(page.root, page.sandbox)
        presses = [own.press("pay", address=ADDRESS, amount=1_000) for _ in range(10)]
        return [press.json()["txid"] for press in presses]

    txids = {txid for paid in at_once(4, pay) for txid in paid}
    assert len(txids) == 40
    page.press("mine")
    assert all(page.confirmed(txid) for txid in txids)


def test_the_module_serves_until_ctrl_c_ends_it_cleanly(tmp_path):
    port = free_port()
    options = ("--port", str(port), "--state", str(tmp_path))
    command = [sys.executable, "-m", "btcpay.sandbox", *options]
    process = subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.PIPE)
    try:
        tip = until(lambda: process.poll() is not None or tip_of(port), "the sandbox")
        assert tip == "200"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b"")
    finally:
        process.kill()


def tip_of(port):
    """The tip's height, or "" while nobody listens yet."""
    try:
        return requests.get(
            f"http://127.0.0.1:{port}/blocks/tip/height", timeout=60
        ).text
    except requests.ConnectionError:
        return ""


FIELD = "input[name=address]"
TAPROOT = "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6"  # the longest kind
SIDEWAYS = (
    "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
)
PROBLEM = "document.querySelector('#notice [role=alert]')"


@pytest.fixture
def root(tmp_path):
    """Named before `open_tab`, whose page asks it to the end."""
    with serving_sandbox(tmp_path, Clock()) as (_, root):
        yield root


def test_the_workbench_says_what_went_wrong_or_was_done_and_keeps_what_was_typed(
    root, open_tab
):
    tab = open_tab(root, size=SMALL)
    tab.go(root)
    tab.until("document.readyState === 'complete'")
    tab.click(FIELD)
    tab.type(TAPROOT)
    tab.click("[action='/sandbox/pay'] button")
    tab.until(PROBLEM)
    # the page renews itself each second, and the problem stays
    before = len(tab.requests)
    until(lambda: tab.ask("0") or len(tab.requests) > before + 2, "further looks")
    assert "Amount" in tab.ask(f"{PROBLEM}.textContent")
    assert tab.ask(f"document.querySelector('{FIELD}').value") == TAPROOT
    tab.click("input[name=amount]")
    tab.type("0.00041667")
    paid = f"Paid 41,667 sat to {TAPROOT}. It waits: mine a block."
    for button, said in (
        ("[action='/sandbox/pay'] button", paid),
        ("#mine", "Mined. The tip is block 201."),
    ):
        tab.click(button)
        tab.until(f"document.querySelector('[role=status]')?.textContent === '{said}'")
    assert tab.ask(f"[innerWidth, {SIDEWAYS}]") == [SMALL[0], 0]
    # the browser notes errors
    assert all("400" in refusal for refusal in tab.complaints)
    tab.complaints.clear()
