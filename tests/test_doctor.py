"""`btcpay doctor`: a planted fault for each finding."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import Clock, TickerServer
from fake_esplora import Terminal, Till, open_till

from btcpay.doctor import examine


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    with open_till(tmp_path, ticker, clock) as opened:
        yield opened


def colours(till: Till) -> dict[str, str]:
    findings = examine(till.shop.service.db, till.settings, till.clock())
    return {finding.name: finding.colour for finding in findings}


def test_a_healthy_shop_is_green_and_the_command_says_so(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check()
    output, _ = Terminal(till).run("doctor")
    assert [line.split()[0] for line in output.splitlines()] == ["green", "green"]
    assert f"{invoice['amount_sats']} satoshis confirmed" in output


@pytest.mark.parametrize("column", ["confirmed_sats", "total_sats"])
def test_a_total_that_is_not_the_sum_of_its_rows_is_red(till, column):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check()
    change = "total_sats = total_sats + 1" + (
        ", confirmed_sats = confirmed_sats + 1" if column == "confirmed_sats" else ""
    )
    till.shop.sql(f"UPDATE balance SET {change}")  # noqa: S608
    assert colours(till)["totals of shop"] == "red"
    (red,) = (f for f in Terminal(till).json("doctor", status=1) if f["colour"] == "red")
    assert "sum up to" in red["sentence"] and "restore" in red["remedy"]


@pytest.mark.parametrize(("minutes", "colour"), [(15, "green"), (15.1, "red")])
def test_a_check_that_is_too_long_ago_is_red(till, minutes, colour):
    till.check()
    till.clock.move(minutes=minutes)
    assert colours(till)["check"] == colour


def test_before_the_first_check_it_is_yellow(till):
    assert colours(till)["check"] == "yellow"
    assert "from cron" in Terminal(till).run("doctor")[0]


def test_a_check_that_was_not_complete_does_not_count(till):
    till.check()
    till.clock.move(hours=1)
    till.shop.invoice()
    till.sandbox.switches.explorer_up = False
    till.check()
    assert colours(till)["check"] == "red"
