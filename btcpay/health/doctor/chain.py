"""What the chain tells of our own faults: a wrong clock, addresses that others hand out too."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from btcpay.chain.explorers.open import open_explorers
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.health.doctor.explorers import Visit
from btcpay.health.doctor.finding import GREEN, RED, YELLOW, Finding, Opened, Patient
from btcpay.http.clock_skew import CLOCK_OFF, REMEDY
from btcpay.merchants.account import derive
from btcpay.values.errors import ExplorerError
from storage.database import Row
from storage.queries import merchants

CLOCK_NEAR = timedelta(seconds=30)  # a Date header has whole seconds and took a while to come
BLOCK_AHEAD = timedelta(hours=2)  # no node takes a block whose time is further ahead of its own
EXPLORERS_FIRST = "repair the explorers first"
AHEAD = 10  # addresses behind the counter that are asked about
MOST_MERCHANTS = 20  # so that a run costs at most 200 calls here


def clock(patient: Patient, visits: Sequence[Visit]) -> Iterator[Finding]:
    """Compares our clock with the explorers': one that agrees is enough."""
    tips = [visit.tip_at for visit in visits if visit.tip_at and not visit.is_foreign]
    if any(tip_at - patient.now() > BLOCK_AHEAD for tip_at in tips):
        yield Finding("clock", RED, "the chain's last block is hours ahead of it", REMEDY)
        return
    off = min((visit.ahead for visit in visits if visit.ahead is not None), key=abs, default=None)
    if off is None:
        told = "no explorer told the time to compare it with"
        yield Finding("clock", YELLOW, told, EXPLORERS_FIRST)
        return
    colour = RED if abs(off) > CLOCK_OFF else YELLOW if abs(off) > CLOCK_NEAR else GREEN
    told = f"{abs(off) // timedelta(seconds=1)} s from the nearest explorer's"
    yield Finding("clock", colour, told, "" if colour == GREEN else REMEDY)


def addresses_ahead(
    opened: Opened, visits: Sequence[Visit], quota: Quota | None
) -> Iterator[Finding]:
    """Nobody but the service may hand out its account's addresses."""
    settings = opened.patient.settings
    good = [visit.url for visit in visits if not visit.trouble]
    rows = opened.db.rows(merchants.ALL)
    if not good:
        told = "no explorer could be asked whether somebody else hands them out"
        yield Finding("addresses", YELLOW, told, EXPLORERS_FIRST)
        return
    explorers = open_explorers(settings, quota, urls=good)
    for merchant in rows[:MOST_MERCHANTS]:
        yield _ahead_of(merchant, explorers, opened)
    if rows[MOST_MERCHANTS:]:
        told = f"{len(rows) - MOST_MERCHANTS} more merchants were not asked about"
        yield Finding("addresses", GREEN, told)


def _ahead_of(merchant: Row, explorers: Explorers, opened: Opened) -> Finding:
    name, start = f"addresses of {merchant['name']}", merchant["next_index"]
    xpub, script_type = merchant["xpub"], merchant["script_type"]
    try:
        used = [
            index
            for index in range(start, start + AHEAD)
            if explorers.is_used(derive(xpub, script_type, index, opened.patient.settings.network))
        ]
    except ExplorerError as error:
        return Finding(name, YELLOW, f"could not be asked about: {error}", "try again later")
    if not used:
        return Finding(name, GREEN, f"the {AHEAD} from the next one ({start}) on are unused")
    return Finding(
        name,
        RED,
        f"number {', '.join(map(str, used))} is used on the chain, the next one is {start}",
        "this is an old copy of the database, or another program uses the same account: give the"
        " service an account of its own, and run `btcpay restore --in-place`",
    )
