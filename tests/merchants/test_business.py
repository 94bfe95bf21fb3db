"""What receipts say of a business: address, tax number and tax, by the command."""

import pytest

from btcpay.merchants.business import checked_business_address, checked_tax_percent
from btcpay.values.errors import CommandError
from tests.support.fake_esplora import Terminal

PERCENTS = {
    "19": "19",
    " 19 % ": "19",
    "7.7": "7.7",
    "7,70\u00a0%": "7.7",
    "8.875": "8.875",
    "0.001": "0.001",
    "100": "100",
    "١٥٪": "15",
    "۷٫۷": "7.7",
    "\u200e15\u200e%": "15",
    "": None,
    "  ": None,
}


@pytest.mark.parametrize(("typed", "stored"), PERCENTS.items())
def test_a_rate_is_read_as_people_write_it(typed, stored):
    assert checked_tax_percent(typed) == stored


@pytest.mark.parametrize(
    "typed",
    ["0", "0.000", "100.001", "101", "-19", "1e1", "19 EUR", "7.7701", "x",
     "²", "1²", "⑦", "7⁵⁰", "9" * 21, "1 9"],
)  # fmt: skip
def test_what_is_no_rate_is_refused(typed):
    with pytest.raises(CommandError, match="a percentage above 0 and up to 100"):
        checked_tax_percent(typed)


ADDRESSES = {
    "lines as browsers send them": ("Quay 1\r\n20095 Hamburg", "Quay 1\n20095 Hamburg"),
    "empty lines": ("\n Quay 1 \n\n\n20095 Hamburg\n", "Quay 1\n20095 Hamburg"),
    "nothing": (" \n ", None),
    "as many lines as may be": ("\n".join("abcdef"), "a\nb\nc\nd\ne\nf"),
    "as many characters": ("x" * 300, "x" * 300),
}


@pytest.mark.parametrize(("typed", "stored"), ADDRESSES.values(), ids=ADDRESSES)
def test_an_address_has_lines(typed, stored):
    assert checked_business_address(typed) == stored


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("\n".join("abcdefg"), "more than 6 lines"),
        ("x" * 301, "more than 300 characters"),
        ("Quay 1\x00", "U\\+0000"),
        ("Quay \u202e1", "U\\+202E"),
    ],
)
def test_what_is_no_address_is_refused(typed, message):
    with pytest.raises(CommandError, match=message):
        checked_business_address(typed)


@pytest.mark.both_databases
def test_the_command_sets_each_for_itself_and_forgets_all(shop):
    blocktill = Terminal(shop)

    def stored(*words):
        (row,) = blocktill.json("merchant", "receipt", "shop", *words)
        return row["business_address"], row["tax_number"], row["tax_percent"]

    assert stored() == (None, None, None)
    assert stored("--address", "Quay 1\nHamburg") == ("Quay 1\nHamburg", None, None)
    assert stored("--tax-number", "DE1")[1] == "DE1"
    everything = ("Quay 1\nHamburg", "DE1", "7.7")
    assert stored("--tax", "7,7 %") == stored() == everything
    blocktill.run("merchant", "brand", "shop", "--name", "Tea", "--clear")
    assert stored() == everything
    assert stored("off", "--tax", "19") == (None, None, "19")
    assert stored("off") == (None, None, None)
    blocktill.run("merchant", "receipt", "shop", "--tax", "no", status=1)
    blocktill.run("merchant", "receipt", "shop", "--tax-number", "\u3164", status=1)
