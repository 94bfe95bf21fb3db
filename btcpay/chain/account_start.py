"""Finds a new shop's first address: the one after all used addresses of its account.

A wallet or another shop may have used the account. If its addresses were given out
again, old payments and late customers would pay new invoices.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from btcpay.bitcoin.address import address_of
from btcpay.bitcoin.descriptor import Descriptor
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.used_addresses import AT_ONCE, GROUP, LOOK_AHEAD, AddressSearch
from btcpay.http.http_client import Session
from btcpay.settings.settings import Settings
from btcpay.values.errors import ExplorerError
from storage.database import Database
from storage.queries import blocks

# The maximum number of addresses that the owner can have left out.
MOST_SKIPPED = 1_000_000
# The maximum time in seconds: of a command, which shows its progress, and of a page.
COMMAND_S = 300.0
PAGE_S = 25.0
# The maximum number of addresses that a public explorer is asked about in a second. The owner's own
# explorer, which is recognised by its large quota, is not limited.
PER_SECOND = 15
OWN_EXPLORER_CALLS = 10_000  # an hour
NO_EXPLORER = "no explorer is set, and nodes cannot be asked about an address"


@dataclass(frozen=True)
class AccountStart:
    """The index of a shop's first address, and how it was found.

    `used_before`: the number of addresses up to the last used one; 0 if none was seen.
    `gap_limit`: the gap limit with which a wallet finds the used addresses and the
    shop's first one.
    `looked_up`: the number of addresses that were looked up.
    `problem`: an English text that says why some could not be looked up; "" if all
    were.
    `is_decided`: True if the shop may begin at `index`. That is so if there was no
    problem, or if the owner leaves out at least all used addresses that were found.
    """

    index: int
    used_before: int
    gap_limit: int
    looked_up: int
    problem: str
    is_decided: bool


def find_account_start(
    db: Database,
    settings: Settings,
    account: Descriptor,
    skip: int | None,
    now: Callable[[], datetime],
    seconds: float,
    on_progress: Callable[[AddressSearch], None] = lambda _search: None,
) -> AccountStart:
    """Looks up which addresses of the account are used, for at most `seconds`.

    `skip` is the number of first addresses that the owner leaves out; None if the owner
    has named none. The search begins shortly before the first address that is not left
    out. If the look-up fails, `problem` of the result has the reason: the addresses
    that were not looked up may be used. `on_progress` is that of `AddressSearch.find`.
    """
    first_index = skip or 0
    start = max(0, first_index - LOOK_AHEAD)
    search = AddressSearch(start, first_index - start + LOOK_AHEAD)
    if settings.explorers:
        problem = _search(
            db,
            settings,
            account,
            search,
            now=now,
            seconds=seconds,
            on_progress=on_progress,
        )
    else:
        problem = NO_EXPLORER
    used_before = 0
    if search.used:
        used_before = search.first_unused
    skips_all_used = skip is not None and used_before <= skip
    index = max(first_index, used_before)
    return AccountStart(
        index=index,
        used_before=used_before,
        gap_limit=search.gap_limit_for(index),
        looked_up=search.position - search.start,
        problem=problem,
        is_decided=not problem or skips_all_used,
    )


def _search(
    db: Database,
    settings: Settings,
    account: Descriptor,
    search: AddressSearch,
    now: Callable[[], datetime],
    seconds: float,
    on_progress: Callable[[AddressSearch], None],
) -> str:
    """Returns why the search ended early; "" if it is complete."""
    quota = Quota(db, settings.explorer_calls_per_hour, now)
    session = Session(AT_ONCE, settings.proxy)
    explorers = open_explorers(settings, quota, session)
    explorers.end_within(seconds)
    pace = _Pace(settings.explorer_calls_per_hour)

    def after_group(search: AddressSearch) -> None:
        on_progress(search)
        if not search.is_complete:
            pace.wait()

    def is_used(index: int) -> bool:
        address = address_of(account.script(index), settings.network)
        return explorers.is_used(address)

    try:
        explorers.require_chain(blocks.tip_height(db) or 0)
        search.find(is_used, after_group)
    except ExplorerError as error:
        return str(error)
    finally:
        explorers.close()
        explorers.store_outcomes(db, settings, now())
    return ""


class _Pace:
    """Makes a search wait between its groups of addresses, to spare a public explorer."""

    def __init__(self, calls_per_hour: int) -> None:
        self._group_s = GROUP / PER_SECOND
        if calls_per_hour >= OWN_EXPLORER_CALLS:
            self._group_s = 0
        self._next_s = time.monotonic() + self._group_s

    def wait(self) -> None:
        """Waits until the next group of addresses may be looked up."""
        time.sleep(max(0, self._next_s - time.monotonic()))
        self._next_s = time.monotonic() + self._group_s
