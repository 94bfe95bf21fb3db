"""Every explorer: does it answer, on the right network, at the tip? Are our addresses unused?"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.wire import DecodeError
from btcpay.chain.explorers.pool import Explorers, open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.sources import (
    MAX_BLOCKS_BEHIND,
    BudgetSpent,
    Explorer,
    WrongNetwork,
    fetch_proven_block,
)
from btcpay.health.doctor.remedies import remedy_for
from btcpay.health.doctor.shop import Shop
from btcpay.http.clock_skew import CLOCK_OFF
from btcpay.merchants.account import derive
from btcpay.values.errors import ExplorerError, FetchError, ProofFailed
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from btcpay.values.networks import SANDBOX_URL, Known, Network
from btcpay.values.times import SET_CLOCK, from_unix_s
from storage.database import Database
from storage.models import Merchant
from storage.queries import merchants

OF_SANDBOX = "is `blocktill sandbox` running, nothing down? For other ports use the line it prints"
OF_NETWORK = "check this machine's network, or BLOCKTILL_PROXY"
REMEDY = (
    "try it in a browser: if it fails there too, name another one in BLOCKTILL_EXPLORERS; else"
    f" {OF_NETWORK}"
)
CLOCK_NEAR = timedelta(
    seconds=30
)  # a Date header has whole seconds and took a while to come
BLOCK_AHEAD = timedelta(
    hours=2
)  # no node takes a block whose time is further ahead of its own
EXPLORERS_FIRST = "repair the explorers first, or name others in BLOCKTILL_EXPLORERS"
AHEAD = 10  # addresses after the counter that are asked about
MOST_MERCHANTS = 20  # so that a run costs at most 200 calls here


@dataclass
class Probe:
    """An explorer's answers; `trouble` is its fault, or "".

    `ahead` is our clock minus its clock, None when it gave no time.
    """

    url: str
    host: str
    trouble: str = ""
    remedy: str = REMEDY
    is_foreign: bool = False
    is_spent: bool = False
    height: int | None = None
    tip_at: datetime | None = None
    ahead: timedelta | None = None


def probe_all(
    shop: Shop, quota: Quota | None, known_height: int, first: Known | None
) -> list[Probe]:
    """Probes each explorer with at most four calls, counted by `quota`.

    `known_height` is that of the best block that a check has proven, `first` the lowest one kept.
    """
    probes = [_probe(url, shop, quota, first) for url in shop.settings.explorers]
    best = max(
        [known_height, *(probe.height or 0 for probe in probes if not probe.is_foreign)]
    )
    for probe in probes:
        if not probe.trouble:
            judge_tip(probe, best, shop.settings.network, shop.now())
    return probes


def findings(probes: Sequence[Probe]) -> Iterator[Finding]:
    """An explorer in trouble is yellow; red if all are, since nothing would ever be paid."""
    good = [probe.host for probe in probes if not probe.trouble]
    if len(good) == 1 < len(probes):
        sentence = (
            f"only {good[0]} shows our chain: invoices end a day after their deadline"
        )
        yield Finding("second explorer", YELLOW, sentence, EXPLORERS_FIRST)
    all_bad = all(probe.trouble for probe in probes if not probe.is_spent)
    for probe in probes:
        name = f"explorer {probe.host}"
        if not probe.trouble:
            yield Finding(name, GREEN, f"at block {probe.height}, with whole blocks")
        else:
            red = (all_bad or probe.is_foreign) and not probe.is_spent
            yield Finding(name, RED if red else YELLOW, probe.trouble, probe.remedy)


def _probe(url: str, shop: Shop, quota: Quota | None, first: Known | None) -> Probe:
    explorers = open_explorers(shop.settings, quota, urls=[url])
    (explorer,) = explorers.all
    probe = Probe(
        url, explorer.host, remedy=OF_SANDBOX if url == SANDBOX_URL else REMEDY
    )
    try:
        _ask(probe, explorer, first)
    except (FetchError, ProofFailed, DecodeError) as error:
        probe.is_spent = isinstance(error, BudgetSpent)
        if isinstance(error, WrongNetwork):
            probe.is_foreign = True
            probe.remedy = "correct BLOCKTILL_EXPLORERS, or BLOCKTILL_NETWORK"
        elif not probe.trouble:
            probe.remedy = remedy_for(error, "BLOCKTILL_EXPLORERS", probe.remedy)
        probe.trouble = probe.trouble or str(error)
    probe.ahead = explorers.clock_skew.offset(shop.now(), time.monotonic())
    return probe


def _ask(probe: Probe, explorer: Explorer, first: Known | None) -> None:
    """Fills in the probe. Raises at the first fault; sets `trouble` where that explains more."""
    height, raw = explorer.require_chain(0)
    header = parse_header(raw)
    probe.height = height
    probe.tip_at = from_unix_s(header.time)
    try:
        fetch_proven_block(explorer, header.hash)
    except BudgetSpent:
        raise
    except (FetchError, ProofFailed) as error:
        probe.trouble = f"cannot show its last block, so it settles nothing: {error}"
        probe.remedy = "name one that shows whole blocks in BLOCKTILL_EXPLORERS"
        raise
    if first and explorer.block_hash(min(first.height, height)) != first.hash:
        probe.trouble = f"lacks our block {first.height}, the first that we keep"
        probe.remedy = (
            "name another one in BLOCKTILL_EXPLORERS;"
            " if all lack it, `blocktill chain begin-anew`"
        )


def judge_tip(probe: Probe, best: int, network: Network, now: datetime) -> None:
    """Notes trouble when the tip is too far below `best`, or too old for its network."""
    behind = best - (probe.height or 0)
    if behind > MAX_BLOCKS_BEHIND:
        probe.trouble = f"is {behind} blocks behind, at {probe.height}"
    elif probe.tip_at and network.stands_still(probe.tip_at, now):
        minutes = (now - probe.tip_at) // timedelta(minutes=1)
        probe.trouble = (
            f"has shown no block for {minutes} minutes; its last is {probe.height}"
        )


def clock(shop: Shop, probes: Sequence[Probe]) -> Iterator[Finding]:
    """Compares our clock with the explorers'; agreement with one is enough."""
    tips = [probe.tip_at for probe in probes if probe.tip_at and not probe.is_foreign]
    if any(tip_at - shop.now() > BLOCK_AHEAD for tip_at in tips):
        yield Finding(
            "clock", RED, "the chain's last block is hours ahead of it", SET_CLOCK
        )
        return
    off = min(
        (probe.ahead for probe in probes if probe.ahead is not None),
        key=abs,
        default=None,
    )
    if off is None:
        sentence = "no explorer gave a time to compare it with"
        yield Finding("clock", YELLOW, sentence, EXPLORERS_FIRST)
        return
    colour = RED if abs(off) > CLOCK_OFF else YELLOW if abs(off) > CLOCK_NEAR else GREEN
    sentence = f"{abs(off) // timedelta(seconds=1)} s from the nearest explorer's"
    yield Finding("clock", colour, sentence, "" if colour == GREEN else SET_CLOCK)


def addresses_ahead(
    shop: Shop, db: Database, probes: Sequence[Probe], quota: Quota | None
) -> Iterator[Finding]:
    """Nobody but the service may hand out its account's addresses."""
    good = [probe.url for probe in probes if not probe.trouble]
    rows = db.rows(merchants.ALL)
    if not good:
        sentence = "no explorer could be asked whether somebody else hands them out"
        yield Finding("addresses", YELLOW, sentence, EXPLORERS_FIRST)
        return
    explorers = open_explorers(shop.settings, quota, urls=good)
    for merchant in rows[:MOST_MERCHANTS]:
        yield _ahead_of(merchant, explorers, shop)
    if rows[MOST_MERCHANTS:]:
        sentence = f"{len(rows) - MOST_MERCHANTS} more merchants were not asked about"
        yield Finding("addresses", GREEN, sentence)


def _ahead_of(merchant: Merchant, explorers: Explorers, shop: Shop) -> Finding:
    name = f"addresses of {merchant.name}"
    start = merchant.next_index
    try:
        used = [
            index
            for index in range(start, start + AHEAD)
            if explorers.is_used(
                derive(merchant.descriptor, index, shop.settings.network)
            )
        ]
    except ExplorerError as error:
        return Finding(
            name, YELLOW, f"could not be asked about: {error}", "try again later"
        )
    if not used:
        return Finding(name, GREEN, f"the next {AHEAD}, from {start} on, are unused")
    return Finding(
        name,
        RED,
        f"number {', '.join(map(str, used))} is used on the chain, but the next one is {start}",
        "this is an old copy of the database, or another program uses the same account: give the"
        " service an account of its own, and run `blocktill restore --in-place`",
    )
