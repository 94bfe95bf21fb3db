"""The QR code as a phone and a wallet read it: off the screen, then by Electrum's own parser."""

import json
import subprocess
from contextlib import closing

import pytest

from btcpay.values.money import btc_text
from tests.support.accounts import descriptor_of
from tests.support.browser import DESK, PHONE, SMALL, lack
from tests.support.hosted import open_hosted, show

# Debian's package belongs to Debian's Python.
ELECTRUM = """
import json, sys
from electrum import constants, util
network, *uris = json.load(sys.stdin)
if network == "regtest":
    constants.set_regtest()
print(json.dumps([util.parse_URI(uri) for uri in uris]))
"""


def electrum(network, *uris):
    """Electrum's reading of each: address, amount in satoshis, label, message."""
    words = ["/usr/bin/python3", "-c", ELECTRUM]
    done = subprocess.run(
        words, input=json.dumps([network, *uris]), capture_output=True, text=True
    )
    if "ModuleNotFoundError: No module named 'electrum'" in done.stderr:
        lack("needs Debian's electrum")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def surrounding(tab):
    """The colours of the four modules around the code, and of the corners between."""
    code = tab.qr().position
    picture = tab.picture().convert("RGB")
    module = (code.top_right.x - code.top_left.x) / 37  # of version 5
    left = round(code.top_left.x - 3.5 * module)
    top = round(code.top_left.y - 3.5 * module)
    right = round(code.bottom_right.x + 3.5 * module)
    bottom = round(code.bottom_right.y + 3.5 * module)
    edges = [(x, y) for x in range(left, right) for y in (top, bottom)]
    edges += [(x, y) for y in range(top, bottom) for x in (left, right)]
    return {picture.getpixel(place) for place in edges}


@pytest.mark.parametrize(
    ("size", "theme"),
    [(SMALL, "dark"), (PHONE, "dark"), (PHONE, "light"), (DESK, "dark")],
)
def test_a_phone_reads_address_and_amount_off_the_screen(
    open_tab, counter, size, theme
):
    invoice = counter.invoice(description="Two bags of coffee")
    tab = show(open_tab, counter, invoice, theme=theme, size=size)
    address = invoice["deposit_address"]
    amount = btc_text(invoice["amount_sats"])
    code = tab.qr()
    assert code.text == f"bitcoin:{address}?amount={amount}"
    assert code.ec_level in "MQH"
    assert surrounding(tab) == {(255, 255, 255)}


def test_a_phone_reads_the_longest_address_off_a_small_screen(
    open_tab, ticker, tmp_path
):
    with open_hosted(tmp_path, ticker) as hosted:
        hosted.shop.sql(f"UPDATE merchant SET descriptor = '{descriptor_of('p2wsh')}'")  # noqa: S608
        invoice = hosted.invoice()
        assert len(invoice["deposit_address"]) == 64
        amount = btc_text(invoice["amount_sats"])
        with closing(
            show(open_tab, hosted, invoice, size=SMALL)
        ) as tab:  # it asks to the end
            assert (
                tab.qr().text == f"bitcoin:{invoice['deposit_address']}?amount={amount}"
            )
            assert tab.ask("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_press_on_the_code_copies_its_link(open_tab, counter):
    wallet = open_tab("data:")
    tab = show(open_tab, counter, counter.invoice())
    wallet.go("data:text/html,<!doctype html><textarea name=to autofocus></textarea>")
    tab.click("#qr")
    tab.until("document.getElementById('qr').dataset.said === 'Copied'")
    assert tab.text("announce") == "QR code of the payment: Copied"
    link = tab.ask("document.getElementById('open-wallet').getAttribute('href')")
    assert wallet.paste() == link
    assert tab.qr().text == link  # it can be read again


@pytest.mark.parametrize("network", ["mainnet", "regtest"])
def test_electrum_reads_the_qr_code_and_the_link_as_the_same_request(
    open_tab, ticker, tmp_path, network
):
    with open_hosted(tmp_path, ticker, BLOCKTILL_NETWORK=network) as hosted:
        invoice = hosted.invoice(amount_usd=1234.56, description="Tea & cake, 100 %")
        asked = {
            "address": invoice["deposit_address"],
            "amount": invoice["amount_sats"],
        }
        assert asked["address"].startswith(
            {"mainnet": "bc1q", "regtest": "bcrt1q"}[network]
        )
        with closing(show(open_tab, hosted, invoice)) as tab:
            link = tab.ask(
                "document.getElementById('open-wallet').getAttribute('href')"
            )
            said = electrum(network, tab.qr().text, link)
        message = "Tea & cake, 100 %"
        assert said == [asked, asked | {"message": message, "memo": message}]
