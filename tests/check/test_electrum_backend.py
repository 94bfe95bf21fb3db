"""An explorer as people host it: mempool on its electrum backend, which lacks the mempool's path.

The check is the shipped command, with one such explorer, and with it and another one.
"""

import re
from contextlib import contextmanager

import pytest

from tests.support.fake_esplora import Terminal, say
from tests.support.mempool_electrum import MempoolElectrum, cannot_get

# Which explorers are set: {0} is mempool on its electrum backend, {1} the other one.
EXPLORERS = {
    "alone": "{0}",
    "before another": "{0} {1}",
    "behind another": "{1} {0}",
}


@contextmanager
def mempool_of(till, explorers="{0}"):
    """The shop's command with these explorers, and the mempool instance."""
    honest = till.liar.honest
    with MempoolElectrum(honest) as mempool:
        roots = explorers.format(mempool.root, honest)
        terminal = Terminal(till)
        terminal.environ["BLOCKTILL_EXPLORERS"] = roots
        yield terminal, mempool


def over(till, invoice, hours):
    """The invoice's deadline has passed for so long."""
    ms = int(hours * 3_600_000)
    till.shop.sql(
        f"UPDATE invoice SET created_ms = created_ms - {ms} - 3600000,"  # noqa: S608
        f" expires_ms = created_ms - {ms} WHERE id = '{invoice['id']}'"
    )


@pytest.mark.parametrize("case", EXPLORERS)
def test_a_payment_that_waits_is_seen_and_an_unpaid_order_ends(till, case):
    paid = till.shop.invoice()
    unpaid = till.shop.invoice()
    till.pay(paid)
    till.open_page(paid)
    over(till, unpaid, hours=0.1)
    with mempool_of(till, EXPLORERS[case]) as (blocktill, _):
        report = blocktill.json("check", "--once")
    assert report["changed"] == {unpaid["id"]: "expired"}
    assert (report["looked_at"], report["unreached"]) == (2, [])
    assert till.kinds(paid) == ["seen"]
    till.mine()
    with mempool_of(till, EXPLORERS[case]) as (blocktill, _):
        assert blocktill.json("check")["changed"] == {paid["id"]: "paid"}


def test_the_missing_path_is_asked_for_once_and_not_in_each_check(till):
    invoice = till.shop.invoice()
    with mempool_of(till) as (blocktill, mempool):
        for _ in range(3):
            blocktill.run("check", "--invoice", invoice["id"])
        assert mempool.count("/txs/mempool$") == 1
        assert mempool.count("/txs$") == 3


# What answers each question about an address.
NO_LOOK_UPS = {
    "a proxy's page for everything": cannot_get("/address"),
    "a path that no method is allowed for": say("", 405),
    "an address of an unknown kind": say("Invalid Bitcoin address", 400),
    "an error": say({"error": "Failed to get address transactions"}, 500),
}


@pytest.mark.parametrize("case", NO_LOOK_UPS)
def test_where_no_mempool_ever_answers_an_order_ends_after_a_day_by_the_blocks(
    case, till
):
    till.liar.instead = lambda path: (
        NO_LOOK_UPS[case] if path.startswith("/address/") else None
    )
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(hours=25.9)
    till.mine_and_check()
    assert till.look(invoice)["status"] == "open"
    till.clock.move(hours=1.2)  # a block's time is an hour later than that day's end
    assert till.mine_and_check().new_statuses == {invoice["id"]: "expired"}


def test_money_that_was_seen_in_time_holds_an_order_that_no_mempool_answers_for(
    till,
):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.pay(invoice)
    till.look_for(invoice)
    till.liar.instead = lambda path: (
        say("", 404) if path.startswith("/address/") else None
    )
    till.clock.move(hours=50)
    till.mine_only()
    assert till.check().new_statuses == {}
    till.mine()
    assert till.check().new_statuses == {invoice["id"]: "paid"}


def test_an_order_that_a_block_pays_in_time_does_not_end_unpaid(till):
    till.liar.instead = lambda path: (
        say("", 404) if path.startswith("/address/") else None
    )
    invoice = till.shop.invoice(expires_in_hours=1)
    till.pay_in_block(invoice)
    till.clock.move(hours=50)
    assert till.mine_and_check().new_statuses == {invoice["id"]: "paid"}


def test_the_doctor_finds_such_an_explorer_well(till):
    with mempool_of(till) as (blocktill, mempool):
        findings = {one["name"]: one for one in blocktill.json("doctor")}
    finding = findings["explorer 127.0.0.1"]
    assert finding["colour"] == "green", finding
    assert findings["addresses of shop"]["colour"] == "green"
    asked = {
        re.sub("[0-9a-f]{64}|(?<=/)[0-9]+|bcrt1[0-9a-z]+", ":", path)
        for path in mempool.asked
    }
    assert asked == {
        "/api/blocks",
        "/api/blocks/:",
        "/api/blocks/tip/hash",
        "/api/blocks/tip/height",
        "/api/block-height/:",
        "/api/block/:/header",
        "/api/block/:/raw",
        "/api/address/:/txs/mempool",
        "/api/address/:/txs",
    }
