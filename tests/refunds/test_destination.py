"""The address that a payer gives: taken in any spelling, or refused with the reason."""

import pytest
from builders import Clock, open_shop

from btcpay.bitcoin.address import address_of, p2pkh, p2sh, witness_script
from btcpay.refunds.destination import read
from btcpay.values.errors import Refused
from btcpay.values.networks import NETWORKS

REGTEST, MAINNET = NETWORKS["regtest"], NETWORKS["mainnet"]
KINDS = {
    "P2PKH": p2pkh(b"\1" * 20),
    "P2SH": p2sh(b"\1" * 20),
    "P2WPKH": witness_script(0, b"\1" * 20),
    "P2WSH": witness_script(0, b"\1" * 32),
    "P2TR": witness_script(1, b"\1" * 32),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory, ticker):
    with open_shop(tmp_path_factory.mktemp("shop"), ticker.url, Clock()) as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["{}", " bitcoin:{}?amount=0.001&label=a ", "BITCOIN:{}"])
def test_every_kind_is_taken_in_every_form(shop, kind, form):
    address = address_of(KINDS[kind], REGTEST)
    found = read(shop.service.db, REGTEST, form.format(address), 1_000)
    assert found == (address, KINDS[kind], kind)


SEGWIT = address_of(KINDS["P2WPKH"], REGTEST)


@pytest.mark.parametrize(
    ("text", "sats", "code"),
    [
        pytest.param(address_of(KINDS["P2WPKH"], MAINNET), 1_000, "other_network", id="mainnet"),
        pytest.param(address_of(KINDS["P2PKH"], MAINNET), 1_000, "other_network", id="an old one"),
        pytest.param(SEGWIT[:-1] + "q", 1_000, "malformed", id="a spoiled checksum"),
        pytest.param(SEGWIT[:-5], 1_000, "malformed", id="cut off"),
        pytest.param("", 1_000, "malformed", id="nothing"),
        pytest.param("lnbc1" + "q" * 3_000, 1_000, "malformed", id="an endless text"),
        pytest.param("\u202e\0", 1_000, "malformed", id="letters that no address has"),
        pytest.param(address_of(witness_script(2, b"\1" * 32), REGTEST), 1_000, "kind",
            id="a version of the future"),
        pytest.param(address_of(witness_script(1, b"\1\1"), REGTEST), 1_000, "kind", id="P2A"),
        pytest.param(SEGWIT, 293, "dust", id="one satoshi below the dust of its kind"),
        pytest.param(address_of(KINDS["P2PKH"], REGTEST), 545, "dust", id="of an older kind"),
    ],
)  # fmt: skip
def test_any_other_text_is_refused_with_the_reason(shop, text, sats, code):
    with pytest.raises(Refused) as refused:
        read(shop.service.db, REGTEST, text, sats)
    assert refused.value.code == code


def test_the_least_that_can_be_sent_is_taken(shop):
    assert read(shop.service.db, REGTEST, SEGWIT, 294).kind == "P2WPKH"


def test_an_address_of_this_service_is_refused(shop):
    """Or the money would come back as somebody's payment."""
    own = shop.invoice()["deposit_address"]
    with pytest.raises(Refused, match="of this service"):
        read(shop.service.db, REGTEST, own, 1_000)
