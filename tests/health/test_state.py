"""Whether the shop is well: `/readyz`, doctor and pages have no other rule."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.chain.progress import Progress
from btcpay.health.state import state_of
from btcpay.settings import settings

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
WELL = {
    "found_at": NOW,
    "progress": Progress(900_000, NOW - timedelta(minutes=7), 0),
    "backed_up_at": NOW,
}


def ago(**delta: float) -> datetime:
    return NOW - timedelta(**delta)


@pytest.mark.parametrize(
    ("part", "colour", "facts"),
    [
        ("found", "green", {"found_at": ago(minutes=15)}),
        ("found", "red", {"found_at": ago(minutes=15.001)}),
        ("found", "green", {"found_at": ago(minutes=-15)}),
        ("found", "red", {"found_at": ago(minutes=-15.001)}),
        ("found", "yellow", {"found_at": None}),
        ("chain", "green", {}),
        ("chain", "green", {"progress": None}),
        ("chain", "yellow", {"progress": Progress(9, NOW, 1)}),
        ("chain", "green", {"progress": Progress(9, ago(hours=2), 0)}),
        ("chain", "red", {"progress": Progress(9, ago(hours=2.001), 0)}),
        ("backup", "green", {"backed_up_at": ago(days=3)}),
        ("backup", "yellow", {"backed_up_at": ago(days=3.001)}),
        ("backup", "yellow", {"backed_up_at": None}),
    ],
    ids=[
        "payments were found a quarter of an hour ago",
        "payments have not been found for longer",
        "a clock a quarter of an hour behind the last check",
        "a clock further behind it",
        "a shop that was never checked",
        "every block is read",
        "there is no chain before the first invoice",
        "a block is still to be read",
        "the newest block is two hours old",
        "the newest block is older than that",
        "a backup of three nights ago",
        "an older backup",
        "no backup at all",
    ],
)
def test_how_well_a_part_of_the_shop_is(part, colour, facts):
    read = settings.read({"BTCPAY_NETWORK": "mainnet", "BTCPAY_EXPLORERS": "https://a.example"})
    state = state_of(**(WELL | facts), settings=read, now=NOW)
    colours = {"found": "green", "chain": "green", "backup": "green"}
    assert {name: getattr(state, name) for name in colours} == colours | {part: colour}


def test_a_test_network_may_be_quiet_for_hours():
    quiet = WELL | {"progress": Progress(9, ago(hours=30), 0)}
    assert state_of(**quiet, settings=settings.read({}), now=NOW).chain == "green"
