"""The rule for the shop's health, the only one that `/readyz`, doctor and pages have."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.chain.progress import Progress
from btcpay.health.state import state_of
from btcpay.settings import settings

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
WELL = {
    "found_at": NOW,
    "previews_late": 0,
    "progress": Progress(900_000, NOW - timedelta(minutes=7), 0),
    "backed_up_at": NOW,
}


def ago(**delta):
    return NOW - timedelta(**delta)


PARTS = {
    "payments were found lately": ("found", "green", {"found_at": ago(minutes=15)}),
    "payments have not been found for longer": ("found", "red", {"found_at": ago(minutes=15.001)}),
    "a clock behind the last check": ("found", "green", {"found_at": ago(minutes=-15)}),
    "a clock further behind it": ("found", "red", {"found_at": ago(minutes=-15.001)}),
    "a shop that was never checked": ("found", "yellow", {"found_at": None}),
    "a page waits for calls": ("previews", "yellow", {"previews_late": 1}),
    "every block is read": ("chain", "green", {}),
    "there is no chain before the first invoice": ("chain", "green", {"progress": None}),
    "a block is still to be read": ("chain", "yellow", {"progress": Progress(9, NOW, 1)}),
    "the newest block is old": ("chain", "green", {"progress": Progress(9, ago(hours=2), 0)}),
    "it is older": ("chain", "red", {"progress": Progress(9, ago(hours=2.001), 0)}),
    "a backup of three nights ago": ("backup", "green", {"backed_up_at": ago(days=3)}),
    "an older backup": ("backup", "yellow", {"backed_up_at": ago(days=3.001)}),
    "no backup at all": ("backup", "yellow", {"backed_up_at": None}),
}


@pytest.mark.parametrize("case", PARTS)
def test_how_well_a_part_of_the_shop_is(case):
    part, colour, facts = PARTS[case]
    read = settings.read({"BTCPAY_NETWORK": "mainnet", "BTCPAY_EXPLORERS": "https://a.example"})
    state = state_of(**(WELL | facts), settings=read, now=NOW)
    colours = dict.fromkeys(("found", "previews", "chain", "backup"), "green")
    assert {name: getattr(state, name) for name in colours} == colours | {part: colour}


LATE = {"in time": (3, "green"), "late": (3.001, "yellow"), "not found any more": (15.001, "red")}


def test_a_check_that_is_late_is_seen_before_payments_are_said_not_to_be_found():
    for case, (minutes, colour) in LATE.items():
        facts = WELL | {"found_at": ago(minutes=minutes)}
        assert state_of(**facts, settings=settings.read({}), now=NOW).checked == colour, case


def test_a_test_network_may_be_quiet_for_hours():
    quiet = WELL | {"progress": Progress(9, ago(hours=30), 0)}
    assert state_of(**quiet, settings=settings.read({}), now=NOW).chain == "green"
