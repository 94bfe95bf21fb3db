"""Probes an explorer: its network, its tip, its blocks and its clock."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.wire import DecodeError
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.sources import (
    MAX_BLOCKS_BEHIND,
    BudgetSpent,
    Explorer,
    WrongNetwork,
    fetch_proven_block,
)
from btcpay.health.doctor.remedies import NETWORK_REMEDY, SANDBOX_REMEDY, remedy_for
from btcpay.health.doctor.shop import Shop
from btcpay.values.errors import FetchError, ProofFailed
from btcpay.values.networks import SANDBOX_URL, Known, Network
from btcpay.values.times import from_unix_s

REMEDY = (
    "try it in a browser: if it fails there too, name another one in BLOCKTILL_EXPLORERS; else"
    f" {NETWORK_REMEDY}"
)


@dataclass
class Probe:
    """The result of probing one explorer.

    `trouble` says what is wrong, "" if nothing is. `is_foreign`: the explorer is on
    another network. `is_spent`: the quota of calls is used up. `height` and `tip_at`
    are those of its tip. `ahead` is our clock minus the explorer's, None if it sent no
    time.
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
    """Probes each explorer with at most four calls, which count in `quota`.

    `known_height` is the height of the best block that a check has proven. `first` is
    the lowest block that is kept.
    """
    probes = [_probe(url, shop, quota, first) for url in shop.settings.explorers]
    best = known_height
    for probe in probes:
        if not probe.is_foreign and probe.height:
            best = max(best, probe.height)
    for probe in probes:
        if not probe.trouble:
            judge_tip(probe, best, shop.settings.network, shop.now())
    return probes


def _probe(url: str, shop: Shop, quota: Quota | None, first: Known | None) -> Probe:
    explorers = open_explorers(shop.settings, quota, urls=[url])
    (explorer,) = explorers.all
    probe = Probe(url, explorer.host)
    if url == SANDBOX_URL:
        probe.remedy = SANDBOX_REMEDY
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
    """Fills in the probe.

    Raises FetchError, ProofFailed or DecodeError at the first fault. Sets `trouble` if
    it can explain the fault better than the exception.
    """
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
    """Sets `trouble` if the tip is too far below `best`, or too old for its network."""
    behind = best - (probe.height or 0)
    if behind > MAX_BLOCKS_BEHIND:
        probe.trouble = f"is {behind} blocks behind, at {probe.height}"
    elif probe.tip_at and network.stands_still(probe.tip_at, now):
        minutes = (now - probe.tip_at) // timedelta(minutes=1)
        probe.trouble = (
            f"has shown no block for {minutes} minutes; its last is {probe.height}"
        )
