"""Tests an explorer: each URL path that `blocktill check` needs, its network, its clock."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.bitcoin.header import Header, parse_header
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
from btcpay.values.networks import SANDBOX_URL, BlockId, Network
from btcpay.values.times import from_unix_s

REMEDY = (
    "try it in a browser: if it fails there too, name another one in BLOCKTILL_EXPLORERS; else"
    f" {NETWORK_REMEDY}"
)


@dataclass
class Probe:
    """The result of testing one explorer.

    - `trouble`: the reason why the explorer does not show the chain correctly; "" if it
      shows the chain.
    - `blindness`: the reason why the explorer does not show unconfirmed payments; "" if
      it shows them.
    - `remedy`: advice for the operator about the trouble or the blindness.
    - `is_foreign`: True if the explorer is on another network.
    - `is_spent`: True if our hourly quota of calls to explorers is used up.
    - `height`, `tip_at`: the height and the time of the explorer's last block.
    - `ahead`: how far our clock is ahead of the explorer's; None if it sent no time.
    """

    url: str
    host: str
    trouble: str = ""
    blindness: str = ""
    remedy: str = REMEDY
    is_foreign: bool = False
    is_spent: bool = False
    height: int | None = None
    tip_at: datetime | None = None
    ahead: timedelta | None = None


class NextAddress(NamedTuple):
    """One of a merchant's next addresses, and its scriptPubKey."""

    address: str
    script: bytes


def probe_all(
    shop: Shop,
    quota: Quota | None,
    known_height: int,
    first: BlockId | None,
    addresses: Sequence[NextAddress],
) -> list[Probe]:
    """Tests each explorer with a few calls, which count in `quota`.

    An explorer gets at most eight calls, plus one or two for each of the `addresses`.
    `known_height` is the height of the best block in the database; 0 if there is none.
    `first` is the lowest block in the database; None if there is none.

    `judge_tip` compares each explorer's tip with the best height: that of the database
    or of the explorers, whichever is higher.
    """
    probes = [
        _probe(url, shop, quota, first, addresses) for url in shop.settings.explorers
    ]
    best = known_height
    for probe in probes:
        if not probe.is_foreign and probe.height:
            best = max(best, probe.height)
    for probe in probes:
        if not probe.trouble:
            judge_tip(probe, best, shop.settings.network, shop.now())
    return probes


def _probe(
    url: str,
    shop: Shop,
    quota: Quota | None,
    first: BlockId | None,
    addresses: Sequence[NextAddress],
) -> Probe:
    explorers = open_explorers(shop.settings, quota, urls=[url])
    (explorer,) = explorers.all
    probe = Probe(url, explorer.host)
    if url == SANDBOX_URL:
        probe.remedy = SANDBOX_REMEDY
    try:
        _test_chain(probe, explorer, first)
        if not probe.trouble:
            _test_mempool(probe, explorer, addresses)
    except (FetchError, ProofFailed, DecodeError) as error:
        _note_error(probe, error)
    probe.ahead = explorers.clock_skew.offset(shop.now(), time.monotonic())
    return probe


def _note_error(probe: Probe, error: Exception) -> None:
    """Sets the probe's trouble and remedy. Keeps a trouble that is set already."""
    probe.is_spent = isinstance(error, BudgetSpent)
    if isinstance(error, WrongNetwork):
        probe.is_foreign = True
        probe.remedy = "correct BLOCKTILL_EXPLORERS, or BLOCKTILL_NETWORK"
    elif not probe.trouble:
        probe.remedy = remedy_for(error, "BLOCKTILL_EXPLORERS", probe.remedy)
    probe.trouble = probe.trouble or str(error)


def _test_chain(probe: Probe, explorer: Explorer, first: BlockId | None) -> None:
    """Sends the requests about the chain, and fills in the probe.

    Raises FetchError, ProofFailed or DecodeError at the first fault. Sets `trouble` if
    it can explain the fault better than the exception does.
    """
    height, raw_header = explorer.require_chain(0)
    header = parse_header(raw_header)
    probe.height = height
    probe.tip_at = from_unix_s(header.time)
    _ask_as_follower(explorer, height, header)
    try:
        fetch_proven_block(explorer, header.hash)
    except BudgetSpent:
        raise
    except (FetchError, ProofFailed) as error:
        probe.trouble = f"cannot show its last block, so it settles nothing: {error}"
        probe.remedy = "name one that shows whole blocks in BLOCKTILL_EXPLORERS"
        raise
    # At most its tip's height: no explorer has a hash above its tip.
    if first and explorer.block_hash(min(first.height, height)) != first.hash:
        probe.trouble = f"lacks our block {first.height}, the first that we keep"
        probe.remedy = (
            "name another one in BLOCKTILL_EXPLORERS;"
            " if all lack it, `blocktill chain begin-anew`"
        )


def _ask_as_follower(explorer: Explorer, height: int, header: Header) -> None:
    """Requests the last block in all the ways in which `blocktill check` requests it.

    Raises FetchError if a request fails.
    """
    explorer.tip_height()
    explorer.header_at(height)
    before_tip = BlockId(height - 1, header.previous)
    for _ in explorer.headers_after([before_tip]):
        pass


def _test_mempool(
    probe: Probe,
    explorer: Explorer,
    addresses: Sequence[NextAddress],
) -> None:
    """Requests unconfirmed payments to the addresses. Sets `blindness` if that fails.

    Raises BudgetSpent if the hourly quota of calls is used up.
    """
    for address, script in addresses:
        try:
            explorer.mempool(address, script)
        except BudgetSpent:
            raise
        except FetchError as error:
            probe.blindness = (
                "cannot say what waits for an address, so payments are seen in blocks alone:"
                f" {error}"
            )
            probe.remedy = (
                "name one that shows addresses and their mempool in BLOCKTILL_EXPLORERS"
            )
            return


def judge_tip(probe: Probe, best: int, network: Network, now: datetime) -> None:
    """Sets `probe.trouble` if the explorer's last block is outdated.

    It is outdated if it is more than MAX_BLOCKS_BEHIND below the height `best`, or
    older than the network's `tip_max_age`.
    """
    blocks_behind = best - (probe.height or 0)
    if blocks_behind > MAX_BLOCKS_BEHIND:
        probe.trouble = f"is {blocks_behind} blocks behind, at {probe.height}"
    elif probe.tip_at and network.stands_still(probe.tip_at, now):
        minutes = (now - probe.tip_at) // timedelta(minutes=1)
        probe.trouble = (
            f"has shown no block for {minutes} minutes; its last is {probe.height}"
        )
