"""Invoices that need a human: listed, counted, yellow; canceled, settled or dismissed by hand."""

import pytest

from btcpay.invoices import manual
from btcpay.invoices.attention import update_attention
from btcpay.invoices.explain import ADVICE, explanation
from btcpay.invoices.history import record
from btcpay.invoices.status import find_story
from btcpay.values.errors import CommandError
from storage.queries import attentions, events, meta
from storage.queries.events import Kind
from tests.support.attention_cases import (
    NAMES,
    WAYS,
    after_cancellation,
    dust_missing,
    late,
    reason_of,
    short,
)
from tests.support.databases import ON_POSTGRES, plan
from tests.support.findings import found
from tests.support.samples import figures

pytestmark = pytest.mark.both_databases


def story(till, invoice):
    asked = (till.shop.service.db, till.settings, invoice["id"], till.clock())
    return list(explanation(find_story(*asked), "not before the next block"))


@pytest.mark.parametrize(
    ("way", "reason"), list(zip(WAYS, NAMES, strict=True)), ids=NAMES
)
def test_what_needs_attention_is_listed_counted_and_yellow_until_dismissed(
    till, blocktill, way, reason
):
    invoice = way(till)
    db = till.shop.service.db
    with db.write():  # what is stored is what is decided anew
        assert (
            update_attention(db, till.settings, invoice["id"], till.clock()) == reason
        )
    (row,) = blocktill.json("invoice", "list", "--attention")
    assert (row["id"], row["reason"]) == (invoice["id"], reason)
    metric = "blocktill_invoices_attention{reason=%s}"
    assert {name: figures(till.shop)[metric % name] for name in NAMES} == {
        name: int(name == reason) for name in NAMES
    }
    finding = found(till)["attention"]
    assert finding.colour == "yellow" and "--attention" in finding.remedy
    advice = blocktill.run("invoice", "list", "--attention")[1]
    assert advice.startswith(f"{reason}: ") and advice.count("\n") == 1
    assert "attention" in dict(story(till, invoice))
    assert ADVICE[reason] in [said for _, said in story(till, invoice)]
    assert (
        blocktill.json("invoice", "show", invoice["id"])["attention"]["reason"]
        == reason
    )
    blocktill.run("invoice", "dismiss", invoice["id"], "--reason", "told them")
    assert blocktill.json("invoice", "list", "--attention") == []
    assert figures(till.shop)[metric % reason] == 0
    assert found(till)["attention"].colour == "green"
    shown = blocktill.json("invoice", "show", invoice["id"])
    last = shown["events"][-1]
    assert shown["attention"] is None and last["kind"] == "dismissed"
    assert last["detail"] == {"attention": reason, "reason": "told them"}
    till.check()
    assert reason_of(till, invoice) is None


def test_the_lists_say_what_was_asked_for_and_what_came(till, blocktill):
    assert blocktill.run("invoice", "list", "--attention") == (
        "",
        "no invoice needs attention\n",
    )
    assert blocktill.json("invoice", "list", "--attention") == []
    invoice = late(till, 1_000)
    (row,) = blocktill.json("invoice", "list", "--attention")
    assert (row["description"], row["status"], row["merchant"]) == (
        "two bags",
        "expired",
        "shop",
    )
    assert (row["amount_sats"], row["received_sats"]) == (invoice["amount_sats"], 1_000)
    assert row["since_at"]
    lines = blocktill.run("invoice", "list", "--attention")[0].splitlines()
    assert (
        "received_sats" in lines[0]
        and "two bags" in lines[1]
        and "paid_late" in lines[1]
    )
    waiting = till.shop.invoice(description="tea")
    till.pay(waiting, 2_000)
    till.look_for(waiting)
    (row,) = blocktill.json("invoice", "list", "--status", "open")
    assert (row["description"], row["received_sats"]) == ("tea", 2_000)
    assert row in blocktill.json("invoice", "list")
    blocktill.run("invoice", "list", "--attention", "--status", "open", status=2)


def test_what_has_waited_longest_is_listed_first_and_the_limit_holds(till, blocktill):
    first = dust_missing(till)
    till.clock.move(minutes=1)
    second = dust_missing(till)
    for limit, listed in (("5", [first, second]), ("1", [first])):
        rows = blocktill.json("invoice", "list", "--attention", "--limit", limit)
        assert [row["id"] for row in rows] == [one["id"] for one in listed]


@pytest.mark.parametrize("way", [late, short, after_cancellation, dust_missing])
def test_a_settlement_by_hand_ends_it_and_what_comes_later_wants_attention_again(
    till, blocktill, way
):
    invoice = way(till)
    assert "invoice settle" in blocktill.run("invoice", "list", "--attention")[1]
    blocktill.run("invoice", "settle", invoice["id"], "--reason", "accepted")
    assert till.look(invoice)["status"] == "paid" and reason_of(till, invoice) is None
    till.confirm(invoice, 1_000)
    assert reason_of(till, invoice) == "too_much"


def test_of_two_dismissals_at_once_one_is_refused_and_so_is_one_without_a_reason(
    till, blocktill
):
    invoice = late(till)
    assert "--reason" in blocktill.run("invoice", "dismiss", invoice["id"], status=2)[1]
    started = [
        blocktill.start("invoice", "dismiss", invoice["id"], "--reason", who)
        for who in ("a", "b")
    ]
    result = [child.communicate(timeout=60) for child in started]
    assert sorted(child.returncode for child in started) == [0, 1], result
    assert till.kinds(invoice).count("dismissed") == 1


def test_a_process_that_dies_within_leaves_neither_the_payment_nor_the_attention(
    till, monkeypatch
):
    invoice = till.shop.invoice()
    till.pay(invoice, 2 * invoice["amount_sats"])
    till.mine()
    till.shop.sql("ALTER TABLE attention RENAME TO gone")
    assert till.check().failed == [invoice["id"]]
    assert till.payments() == [] and till.look(invoice)["status"] == "open"
    till.shop.sql("ALTER TABLE gone RENAME TO attention")
    till.check()
    assert (
        till.look(invoice)["status"] == "paid"
        and reason_of(till, invoice) == "too_much"
    )


def test_counting_reads_an_index_of_what_wants_attention_and_nothing_else(till):
    result = plan(till.shop.service.db, attentions.BY_REASON)
    index = (
        "Only Scan using attention_reason"
        if ON_POSTGRES
        else "COVERING INDEX attention_reason"
    )
    assert index in result and "invoice" not in result.replace("invoice_id", ""), result


def paid_in_part(till, mined=1):
    invoice = till.shop.invoice()
    till.pay(invoice, 1_000)
    if mined:
        till.mine(mined)
    till.check(), till.look_for(invoice)
    return invoice


def cancel(till, invoice_id, force=False):
    manual.cancel(till.shop.service.db, till.settings, invoice_id, till.clock(), force)


def settle(till, invoice_id, reason="a friend"):
    manual.settle(till.shop.service.db, till.settings, invoice_id, reason, till.clock())


def dismiss(till, invoice_id, reason="sent back"):
    return manual.dismiss(
        till.shop.service.db, till.settings, invoice_id, reason, till.clock()
    )


def refused(message):
    return pytest.raises(CommandError, match=message)


@pytest.mark.parametrize("mined", [0, 1], ids=["waiting", "a part"])
def test_a_cancellation_is_refused_while_money_is_on_its_way_unless_forced(till, mined):
    invoice = paid_in_part(till, mined)
    with refused("1000 satoshis.*--force"):
        cancel(till, invoice["id"])
    assert till.look(invoice)["status"] == "open"
    cancel(till, invoice["id"], force=True)
    assert till.look(invoice)["status"] == "canceled"
    with refused("the invoice is canceled"):
        cancel(till, invoice["id"], force=True)


def test_a_settlement_is_refused_when_nothing_confirmed_came_or_it_is_paid(till):
    invoice = till.shop.invoice()
    with refused("nothing to accept"):
        settle(till, invoice["id"])
    till.pay(invoice)
    till.check()
    with refused("nothing to accept"):
        settle(till, invoice["id"])
    till.mine_and_check()
    with refused("paid already"):
        settle(till, invoice["id"])


def test_a_dismissal_says_what_was_wanted_and_is_refused_when_nothing_is(till):
    invoice = paid_in_part(till)
    with refused("nothing about"):
        dismiss(till, invoice["id"])
    cancel(till, invoice["id"], force=True)
    till.confirm(invoice, 2_000)
    assert dismiss(till, invoice["id"]) == "paid after cancellation"
    with refused("nothing about"):
        dismiss(till, invoice["id"])
    assert till.kinds(invoice).count("dismissed") == 1


def test_an_empty_reason_and_an_unknown_invoice_are_refused(till):
    invoice = paid_in_part(till)
    before = till.kinds(invoice)
    for end in (settle, dismiss):
        with refused("needs a reason"):
            end(till, invoice["id"], " ")
    for end in (cancel, settle, dismiss):
        with refused("'inv_x'"):
            end(till, "inv_x")
    assert till.kinds(invoice) == before


def test_declared_kinds_are_stored_by_their_names_and_no_other_kind_or_key_is_written(
    shop,
):
    db = shop.service.db
    invoice = shop.invoice()
    for kind in Kind:
        record(db, invoice["id"], kind, {}, shop.clock())
    with pytest.raises(ValueError, match="lost"):
        record(db, invoice["id"], "lost", {}, shop.clock())
    with pytest.raises(ValueError, match="secret"):
        meta.put(db, "secret", "1")
    stored = [row.kind for row in db.rows(events.OF_INVOICE, invoice_id=invoice["id"])]
    assert stored == list(Kind)
    assert shop.sql("SELECT 1 FROM meta WHERE name = 'secret'").fetchall() == []
