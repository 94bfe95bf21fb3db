"""The table of operations in docs/merchants/shop-plugins.md has those that are answered."""

import re

from btcpay.parts.greenfield.blueprint import OPERATIONS
from tests.support.paths import GONE, PROJECT

PAGE = (PROJECT / "docs/merchants/shop-plugins.md").read_text(encoding="utf-8")
LETTERS = {"<store>": "S", "<inv>": "I", "<whk>": "W", "<rfd>": "P"}
OF_REFUNDS = {
    ("POST", "stores/S/invoices/I/refund"),
    ("POST", "stores/S/pull-payments"),
    ("GET", "pull-payments/P"),
}


def documented():
    """The method and path of each operation that the table names."""
    section = PAGE.partition("### Operations\n")[2].partition("\n### ")[0]
    cells = re.findall(r"^\| (`[A-Z]+[^|]+) \|", section, re.M)
    return {
        (method, path)
        for cell in cells
        for methods, path in re.findall(r"`((?:[A-Z]+(?:, )?)+) ([^`]+)`", cell)
        for method in methods.split(", ")
    }


def answered():
    operations = set()
    for method, path in OPERATIONS:
        for name, letter in LETTERS.items():
            path = path.replace(name, letter)
        operations.add((method, path.strip("/")))
    return operations


def test_the_page_about_plug_ins_names_every_operation_and_no_other():
    without = OF_REFUNDS if "refunds" in GONE else set()
    assert documented() - without == answered()
