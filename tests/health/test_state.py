"""The rule for the shop's health, the only one that `/readyz`, doctor and pages have."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.chain.progress import Progress
from btcpay.health.state import state_of
from btcpay.settings import settings

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
WELL = {
    "checked_at": NOW,
    "previews_late": 0,
    "progress": Progress(900_000, NOW - timedelta(minutes=7), 0),
    "backed_up_at": NOW,
}


def ago(**delta):
    return NOW - timedelta(**delta)


LOST = {"payments": "red", "check": "red"}
# The facts, and the parts that are not green.
PARTS = {
    "all is well, and every block is read": ({}, {}),
    "a check in time": ({"checked_at": ago(minutes=7.5)}, {}),
    "a late check": ({"checked_at": ago(minutes=7.501)}, {"check": "yellow"}),
    "payments were found lately": (
        {"checked_at": ago(minutes=15)},
        {"check": "yellow"},
    ),
    "payments have not been found for longer": (
        {"checked_at": ago(minutes=15.001)},
        LOST,
    ),
    "a clock behind the last check": (
        {"checked_at": ago(minutes=-15)},
        {"check": "yellow"},
    ),
    "a clock further behind it": ({"checked_at": ago(minutes=-15.001)}, LOST),
    "a shop that was never checked": (
        {"checked_at": None},
        dict.fromkeys(LOST, "yellow"),
    ),
    "a page waits for calls": ({"previews_late": 1}, {"previews": "yellow"}),
    "there is no chain before the first invoice": ({"progress": None}, {}),
    "a block is still to be read": (
        {"progress": Progress(9, NOW, 1)},
        {"chain": "yellow"},
    ),
    "the newest block is old": ({"progress": Progress(9, ago(hours=2), 0)}, {}),
    "it is older": ({"progress": Progress(9, ago(hours=2.001), 0)}, {"chain": "red"}),
    "a backup of three nights ago": ({"backed_up_at": ago(days=3)}, {}),
    "an older backup": ({"backed_up_at": ago(days=3.001)}, {"backup": "yellow"}),
    "no backup at all": ({"backed_up_at": None}, {"backup": "yellow"}),
}


@pytest.mark.parametrize("case", PARTS)
def test_how_well_a_part_of_the_shop_is(case):
    facts, colours = PARTS[case]
    read = settings.read(
        {"BLOCKTILL_NETWORK": "mainnet", "BLOCKTILL_EXPLORERS": "https://a.example"}
    )
    state = state_of(**(WELL | facts), settings=read, now=NOW)
    well = dict.fromkeys(("payments", "check", "previews", "chain", "backup"), "green")
    assert {name: getattr(state, name) for name in well} == well | colours


def test_a_test_network_may_be_quiet_for_hours():
    quiet = WELL | {"progress": Progress(9, ago(hours=30), 0)}
    assert state_of(**quiet, settings=settings.read({}), now=NOW).chain == "green"
