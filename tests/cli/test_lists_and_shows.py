"""What `list --json` shows of a row is what `show --json` shows of it: the same names and types."""

import pytest

from tests.support.builders import pay
from tests.support.paths import GONE

pytestmark = pytest.mark.both_databases


def made(till, blocktill):
    """The words of `show` for a row of each kind that has both commands, by the kind's command."""
    invoice = till.shop.invoice(amount_usd=12.5, description="tea")
    pay(till.shop, invoice)
    found = {"invoice": invoice["id"]}
    if "bills" not in GONE:
        found["bill"] = blocktill.json("bill", "create", "shop", "--amount", "100")[
            "id"
        ]
    if "refunds" not in GONE:
        found["refund"] = blocktill.json(
            "refund", "create", invoice["id"], "--sats", "700"
        )["id"]
    return found


def test_a_row_is_the_same_in_its_list_and_alone(till, blocktill):
    for command, id in made(till, blocktill).items():
        (listed,) = blocktill.json(command, "list")
        shown = blocktill.json(command, "show", id)
        facts = shown.get("invoice", shown) | shown.get("standing", {})
        common = listed.keys() & facts.keys()
        assert {"id", "merchant", "status", "created_at"} <= common, command
        assert {name: listed[name] for name in common} == {
            name: facts[name] for name in common
        }
        assert listed["merchant"] == "shop"


def test_a_list_says_whose_each_row_is(till, blocktill):
    till.shop.link(amount_usd=5)
    blocktill.run("webhook", "add", "shop", "https://shop.example/hook")
    for command in ("link", "webhook", "key"):
        rows = blocktill.json(command, "list")
        assert rows and {row["merchant"] for row in rows} == {"shop"}
