"""The address that a payer gives: taken in any spelling, or refused with the reason."""

import pytest

from btcpay.bitcoin.address import address_of, p2pkh, p2sh, witness_script
from btcpay.parts.refunds.destination import parse
from btcpay.values.errors import ChangeRefused
from btcpay.values.networks import NETWORKS
from tests.support.builders import Clock, open_shop

REGTEST = NETWORKS["regtest"]
MAINNET = NETWORKS["mainnet"]
KINDS = {
    "P2PKH": p2pkh(b"\1" * 20),
    "P2SH": p2sh(b"\1" * 20),
    "P2WPKH": witness_script(0, b"\1" * 20),
    "P2WSH": witness_script(0, b"\1" * 32),
    "P2TR": witness_script(1, b"\1" * 32),
}


FORMS = [
    "{}",
    " bitcoin:{}?amount=0.001&label=a ",
    "BITCOIN:{}",
    "bitcoin://{}",
    "Bitcoin://{}/?amount=1",
    "bitcoin:?bcrt={}",
    "BITCOIN:?AMOUNT=1&BCRT={}",
    "bitcoin:{}?lightning=lnbcrt1qqqq&sp=sprt1qqqq",
    "bitcoin:{}?label=req-nonsense&requests=1",
    "\ufeff{}\u200b\n",
    '"{}"',
    "“bitcoin:{}”",
    "<{}>",
    "({}).",
    "{},",
    "bitcoin:///{}",
    "bitcoin:%20{}",
    "“bitcoin:?bcrt={}”",
    "bitcoin\uff1a{}",
]
BLANKS = {
    "a blank": " ",
    "a no-break space": "\u00a0",
    "a narrow no-break space": "\u202f",
    "an ideographic space": "\u3000",
    "a thin space": "\u2009",
    "a space of no width": "\u200b",
    "a word joiner": "\u2060",
    "a soft hyphen": "\u00ad",
    "a mark of direction": "\u200e",
    "a byte order mark": "\ufeff",
    "a line break": "\r\n",
    "a tab": "\t",
    "a line separator": "\u2028",
    "a next line": "\x85",
    "a blank of Braille": "\u2800",
    "a filler of Hangul": "\u3164",
    "a hyphen": "-",
    "a hyphen that breaks no line": "\u2011",
    "a long dash": "\u2014",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory, ticker):
    ticker.reset()
    with open_shop(tmp_path_factory.mktemp("shop"), ticker.url, Clock()) as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_every_kind_is_taken_in_every_form(shop, kind, form):
    address = address_of(KINDS[kind], REGTEST)
    found = parse(shop.service.db, REGTEST, form.format(address), 1_000)
    assert found == (address, KINDS[kind], kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blank", BLANKS.values(), ids=BLANKS)
def test_an_address_in_groups_of_four_is_read_whatever_is_between_them(
    shop, kind, blank
):
    address = address_of(KINDS[kind], REGTEST)
    groups = blank.join(address[at : at + 4] for at in range(0, len(address), 4))
    for form in ("{}", "bitcoin:{}?amount=1"):
        assert (
            parse(shop.service.db, REGTEST, form.format(groups), 1_000).address
            == address
        )


@pytest.mark.parametrize("kind", KINDS)
def test_an_address_in_full_width_is_read(shop, kind):
    address = address_of(KINDS[kind], REGTEST)
    wide = "".join(chr(ord(sign) + 0xFEE0) for sign in address)
    assert parse(shop.service.db, REGTEST, wide, 1_000).address == address


def test_of_several_addresses_the_first_of_a_kind_that_is_found_is_taken(shop):
    future = address_of(witness_script(2, b"\1" * 32), REGTEST)
    other = address_of(KINDS["P2TR"], REGTEST)
    text = f"bitcoin:{future}?bcrt={other}&bcrt={SEGWIT}"
    assert parse(shop.service.db, REGTEST, text, 1_000).address == other


SEGWIT = address_of(KINDS["P2WPKH"], REGTEST)
ON_MAINNET = address_of(KINDS["P2WPKH"], MAINNET)
PAYMENT_CODE = (  # BIP47, the first of its test vectors
    "PM8TJTLJbPRGxSbc8EJi42Wrr6QbNSaSSVJ5Y3E4pbCYiTHUskHg13935Ubb7q8tx9GVbh2UuRnBc3WSyJHhUrw8KhprKnn9"
    "eDznYGieTzFcwQRya4GA"
)


@pytest.mark.parametrize(
    ("text", "sats", "code"),
    [
        pytest.param(address_of(KINDS["P2WPKH"], MAINNET), 1_000, "other_network", id="mainnet"),
        pytest.param(address_of(KINDS["P2PKH"], MAINNET), 1_000, "other_network", id="an old one"),
        pytest.param(SEGWIT[:-1] + "q", 1_000, "malformed", id="a spoiled checksum"),
        pytest.param(SEGWIT[:-5], 1_000, "malformed", id="cut off"),
        pytest.param("", 1_000, "malformed", id="nothing"),
        pytest.param("lnbc1" + "q" * 3_000, 1_000, "malformed", id="an endless text"),
        pytest.param(" " * 3_000 + SEGWIT, 1_000, "malformed", id="behind endless blanks"),
        pytest.param(f"{SEGWIT} {SEGWIT}", 1_000, "malformed", id="two addresses"),
        pytest.param(f"bitcoin:{SEGWIT}?bcrt=x", 1_000, "malformed", id="one whole, one not"),
        pytest.param(f"bitcoin:{SEGWIT}?bc={ON_MAINNET}", 1_000, "other_network",
            id="addresses of two networks"),
        pytest.param(f"bitcoin:{SEGWIT}?req-nonsense=1", 1_000, "demanding", id="what is unknown"),
        pytest.param(f"BITCOIN:{SEGWIT}?a=1&REQ-pop=x", 1_000, "demanding", id="in capitals"),
        pytest.param(f"bitcoin:{SEGWIT}?r%65q%2dpop", 1_000, "demanding", id="percent-encoded"),
        pytest.param(f"bitcoin:{SEGWIT}?req-", 1_000, "demanding", id="nothing that has a name"),
        pytest.param(f"bitcoin:{SEGWIT}?r\u200beq-a=1", 1_000, "demanding", id="a sign is hidden"),
        pytest.param("lnbc2500u1pvjluezpp5qqqsyq", 1_000, "lightning", id="an invoice"),
        pytest.param("LIGHTNING:LNBCRT1PVJLUEZ", 1_000, "lightning", id="one in capitals"),
        pytest.param("bitcoin:?lightning=lntb1pvj", 1_000, "lightning", id="one alone in a URI"),
        pytest.param("LNURL1DP68GURN8GHJ7", 1_000, "lightning", id="LNURL"),
        pytest.param("lno1pg257enxv4ezqcneype82um", 1_000, "lightning", id="an offer"),
        pytest.param("bitcoin:?lno=lno1pg257enxv4", 1_000, "lightning", id="an offer in a URI"),
        pytest.param("₿ada@example.com", 1_000, "lightning", id="a name of BIP353"),
        pytest.param("ada@example.com", 1_000, "lightning", id="an address of Lightning"),
        pytest.param("sp1qqgste7k9hx0qftg6qmwlkqtwuy", 1_000, "silent", id="a silent payment"),
        pytest.param("bitcoin:?sp=tsp1qqgste7k9hx0qf", 1_000, "silent", id="one in a URI"),
        pytest.param(PAYMENT_CODE, 1_000, "payment_code", id="a payment code"),
        pytest.param("vpub5" + "Y" * 106, 1_000, "payment_code", id="an account key"),
        pytest.param("\u202e\0", 1_000, "malformed", id="letters that no address has"),
        pytest.param(address_of(witness_script(2, b"\1" * 32), REGTEST), 1_000, "kind",
            id="a version of the future"),
        pytest.param(address_of(witness_script(1, b"\1\1"), REGTEST), 1_000, "kind", id="P2A"),
        pytest.param(SEGWIT, 293, "dust", id="one satoshi below the dust of its kind"),
        pytest.param(address_of(KINDS["P2PKH"], REGTEST), 545, "dust", id="of an older kind"),
    ],
)  # fmt: skip
def test_any_other_text_is_refused_with_the_reason(shop, text, sats, code):
    with pytest.raises(ChangeRefused) as refused:
        parse(shop.service.db, REGTEST, text, sats)
    assert refused.value.code == code


def test_the_least_that_can_be_sent_is_taken(shop):
    assert parse(shop.service.db, REGTEST, SEGWIT, 294).kind == "P2WPKH"


def test_an_address_of_this_service_is_refused(shop):
    """Or the money would come back as somebody's payment."""
    own = shop.invoice()["deposit_address"]
    with pytest.raises(ChangeRefused, match="of this service"):
        parse(shop.service.db, REGTEST, own, 1_000)
