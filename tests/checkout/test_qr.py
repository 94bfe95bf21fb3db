"""QR codes beside those of another program, read by a third, at every length that they may have."""

import re
import string
from decimal import Decimal

import pytest
import segno
import zxingcpp
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from btcpay.checkout import qr
from btcpay.checkout.bip21 import payment_uri
from btcpay.checkout.qr import QUIET, SIZES, qr_svg

FULL = {size.version: size.blocks * size.data - 2 for size in SIZES}  # bytes of text
LONGEST = FULL[6]
SCALE = 4  # of the pictures


def modules(text: str) -> list[str]:
    """The code's rows."""
    return qr.modules(text).removesuffix("/").split("/")


def read(rows: list[str]) -> zxingcpp.Barcode:
    """What a reader makes of a picture of the code."""
    side = len(rows) + 2 * QUIET
    picture = Image.new("L", (side, side), 255)
    for row, line in enumerate(rows, QUIET):
        for column, module in enumerate(line, QUIET):
            picture.putpixel((column, row), 0 if module == "1" else 255)
    found = zxingcpp.read_barcodes(picture.resize((side * SCALE, side * SCALE), Image.NEAREST))
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("version", FULL)
@given(data=st.data())
def test_a_full_code_is_the_same_module_by_module(version, data):
    """segno fills a code that is not full with one byte that the standard does not have."""
    length = FULL[version]
    text = data.draw(
        st.text(string.ascii_letters + "0123456789:?=.&%", min_size=length, max_size=length)
    )
    code = segno.make_qr(text, error="m", mask=2, mode="byte", boost_error=False)
    assert code.designator == f"{version}-M"
    assert modules(text) == ["".join(map(str, row)) for row in code.matrix]


@pytest.mark.parametrize("length", range(1, LONGEST + 1))
def test_every_length_is_read_in_the_smallest_size_that_holds_it(length):
    text = ("bitcoin:bcrt1qs9j2lu0zsdg39qhv997pukrfups05er9ha3h9x?amount=0.00041667&" * 2)[:length]
    rows, found = modules(text), read(modules(text))
    assert (found.text, found.ec_level) == (text, "M")
    assert len(rows) == 17 + 4 * next(version for version, most in FULL.items() if length <= most)


@pytest.mark.parametrize("version", FULL)
def test_a_code_with_a_spot_on_it_is_read(version):
    text = "x" * FULL[version]
    rows = modules(text)
    spotted = [f"{row[:-5]}111{row[-2:]}" if 9 <= n < 12 else row for n, row in enumerate(rows)]
    assert spotted != rows and read(spotted).text == text


def test_a_text_that_is_too_long_is_refused():
    assert read(modules("x" * LONGEST)).text == "x" * LONGEST
    with pytest.raises(ValueError, match="107 bytes"):
        modules("x" * (LONGEST + 1))


def test_the_longest_payment_uri_has_a_code():
    uri = payment_uri("bcrt1p" + "q" * 58, 21 * 10**14 - 1)
    assert read(modules(uri)).text == uri


def drawn(svg: str) -> list[str]:
    """The modules that the black path covers, by its commands: M to, m by, h draws."""
    side = int(re.search(r'viewBox="0 0 (\d+) ', svg)[1])
    picture = [["0"] * side for _ in range(side)]
    x, y = Decimal(0), Decimal(0)
    for command, one, other in re.findall(
        r"([Mmh])(-?[\d.]+)(?: (-?[\d.]+))?", svg.split('d="')[2]
    ):
        if command == "h":
            for column in range(int(x), int(x) + int(one)):
                picture[int(y)][column] = "1"
        x, y = (
            (Decimal(one), Decimal(other))
            if command == "M"
            else (x + int(one), y + int(other or 0))
        )
    return ["".join(row) for row in picture]


@pytest.mark.parametrize("version", FULL)
def test_the_drawing_has_the_modules_amid_a_quiet_zone(version):
    text = "bitcoin:".ljust(FULL[version], "z")
    blank, margin = "0" * (17 + 4 * version + 2 * QUIET), "0" * QUIET
    framed = [blank] * QUIET + [f"{margin}{row}{margin}" for row in modules(text)] + [blank] * QUIET
    assert drawn(qr_svg(text)) == framed
