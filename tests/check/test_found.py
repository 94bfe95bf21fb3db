"""Payments are found, previews are late: two truths, the same wherever the shop is asked."""

import logging

import pytest
from click import Context, style, unstyle

from btcpay.check.report import Report
from btcpay.cli.check.check import check
from btcpay.cli.check.report import Reporter
from btcpay.cli.check.summary import summary_lines
from btcpay.cli.shell import Shell
from btcpay.merchants.merchants import set_mail
from btcpay.notify.mail.timed import add_clock_mails
from tests.support.fake_esplora import say
from tests.support.findings import found
from tests.support.samples import figures

LATE = "previews are late for 1 of the invoices whose page is open"
RUNS = {
    "nothing is wrong": ({}, True),
    "a block is still to be read": ({"blocks_behind": 1}, False),
    "what was found could not be stored": ({"failed": ["inv"]}, False),
    "the chain may not be whole": ({"stuck_reason": "it stands still"}, False),
    "the chain could not be followed": ({"chain_failed": True}, False),
    "the clock is ahead": ({"clock_ahead_s": 121}, False),
    "a page waits for calls": ({"unreached": ["inv"]}, True),
    "others wait for the next run": ({"put_off": 3}, True),
    "one of two sources is behind": ({"has_tip": True}, True),
}


@pytest.mark.parametrize("case", RUNS)
def test_a_run_is_complete_unless(case):
    facts, is_found = RUNS[case]
    assert Report(**facts).complete is is_found


@pytest.fixture
def busy(open_tills, clock):
    """A shop whose explorer allows fewer calls than its pages need; its blocks are read."""
    limits = {"BLOCKTILL_EXPLORER_CALLS_PER_HOUR": "100"}
    till = open_tills(**limits)
    till.shop.invoice()
    assert till.check().complete
    till.clock.move(hours=1)
    return till


def test_late_previews_are_yellow_with_a_number_and_no_alarm(busy):
    """An hour and a half in which every payment is found, and most pages are not looked for."""
    db = busy.shop.service.db
    set_mail(db, busy.shop.merchant_id, {"address": "owner@shop.example"}, busy.clock())
    invoices = [busy.shop.invoice() for _ in range(40)]
    late = []
    for minute in range(0, 90, 3):
        busy.clock.move(minutes=3)
        busy.open_page(*invoices)
        report = busy.check()
        late.append(len(report.unreached))
        assert report.complete, minute
        add_clock_mails(db, busy.clock())
    assert (
        late[-1] > 0
        and busy.shop.sql(
            "SELECT count(*) FROM delivery WHERE substr(about, 1, 5) = 'check'"
        ).fetchone()[0]
        == 0
    )
    ready = busy.shop.client.get("/readyz")
    assert (ready.status_code, ready.json["check"]["previews_late"]) == (200, late[-1])
    doctor = found(busy)
    assert doctor["check"].colour == "green"
    assert (
        doctor["previews"].colour == "yellow"
        and f"{late[-1]} " in doctor["previews"].sentence
    )
    assert "BLOCKTILL_EXPLORER_CALLS_PER_HOUR" in doctor["previews"].remedy
    assert figures(busy.shop)["blocktill_previews_late"] == late[-1]


def test_a_mempool_that_fails_while_blocks_are_read_makes_previews_late(lied_to):
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="10000")
    seen = till.shop.invoice()
    ended = till.shop.invoice(expires_in_hours=0.5)
    till.clock.move(minutes=31)
    till.open_page(seen)
    till.liar.lies = {"/address/": lambda _: say("down", 500)}
    report = till.check()
    assert (report.unreached, report.put_off, report.failed) == ([seen["id"]], 1, [])
    assert report.complete and till.look(ended)["status"] == "open"
    assert till.shop.client.get("/readyz").json["check"]["previews_late"] == 1
    assert found(till)["previews"].colour == "yellow"
    till.liar.lies = {}
    till.clock.move(minutes=1)
    report = till.check()
    assert (report.unreached, report.new_statuses) == ([], {ended["id"]: "expired"})


def test_what_is_late_or_not_agreed_upon_is_yellow_and_what_fails_is_not():
    lines = summary_lines(Report(unreached=["inv"], has_tip=True, failed=["other"]))
    yellow = [
        unstyle(line) for line in lines if line == style(unstyle(line), fg="yellow")
    ]
    assert [line.partition(":")[0] for line in yellow] == [
        f"{LATE}; their payments are found in blocks",
        "only one of the sources shows the newest blocks",
    ]
    assert not any(
        "only one" in line for line in summary_lines(Report())
    )  # nobody was asked


def test_a_check_with_late_previews_exits_0_says_so_and_to_cron_nothing(
    busy, capsys, monkeypatch
):
    # they are exchanged
    monkeypatch.setattr(logging.root, "handlers", [*logging.root.handlers])
    late = Report(unreached=["inv"])
    for quiet, as_json, said in (
        (True, False, ""),
        (False, False, LATE),
        (False, True, '"inv"'),
    ):
        with Context(check), pytest.raises(SystemExit) as ended:
            Reporter(Shell(busy.shop.service.settings, as_json), quiet).end(late)
        output = capsys.readouterr().out
        assert ended.value.code == 0 and said in output and bool(said) == bool(output)
