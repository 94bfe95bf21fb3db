"""Examines the explorers, this machine's clock, and whether the next addresses are unused."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from btcpay.chain.explorers.pool import Explorers, open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.look_ahead import AHEAD, note_used_ahead, used_ahead
from btcpay.health.doctor.probe import NextAddress, Probe
from btcpay.health.doctor.shop import Shop
from btcpay.http.clock_skew import CLOCK_OFF
from btcpay.merchants.account import at_index
from btcpay.values.errors import ExplorerError
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from btcpay.values.times import SET_CLOCK
from storage.database import Database
from storage.models import Merchant
from storage.queries import merchants

# Tolerance, since a Date header has whole seconds and takes time to arrive.
CLOCK_NEAR = timedelta(seconds=30)
# Nodes reject a block whose time is further ahead of their clock.
BLOCK_AHEAD = timedelta(hours=2)
EXPLORERS_FIRST = "repair the explorers first, or name others in BLOCKTILL_EXPLORERS"
KIND_BYTES = 2  # the first bytes of a script, which tell its type (BIP141, BIP341)
MOST_MERCHANTS = 20  # so that these look-ups cost at most 200 calls


def findings(probes: Sequence[Probe]) -> Iterator[Finding]:
    """Yields a finding for each explorer, and a yellow one if only one of several works.

    The finding of an explorer is

    - red if the explorer is on another network;
    - yellow if it does not show the chain, or red if no explorer shows the chain, since
      then no payment is found;
    - yellow if it shows the chain, but no unconfirmed payments.
    """
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
            yield _without_trouble(name, probe)
            continue
        colour = YELLOW
        if not probe.is_spent and (all_bad or probe.is_foreign):
            colour = RED
        yield Finding(name, colour, probe.trouble, probe.remedy)


def _without_trouble(name: str, probe: Probe) -> Finding:
    """Returns a green finding; a yellow one if no unconfirmed payments are shown."""
    if probe.blindness:
        return Finding(name, YELLOW, probe.blindness, probe.remedy)
    return Finding(name, GREEN, f"at block {probe.height}, with whole blocks")


def next_addresses(shop: Shop, db: Database) -> list[NextAddress]:
    """Returns the next address of one merchant for each script type that merchants use.

    The doctor looks up these addresses at each explorer, since an explorer may not
    support every script type.
    """
    by_kind: dict[bytes, NextAddress] = {}
    for merchant in db.rows(merchants.ALL)[:MOST_MERCHANTS]:
        script, address = at_index(
            merchant.descriptor, merchant.next_index, shop.settings.network
        )
        by_kind.setdefault(script[:KIND_BYTES], NextAddress(address, script))
    return list(by_kind.values())


def clock(shop: Shop, probes: Sequence[Probe]) -> Iterator[Finding]:
    """Yields a finding about this machine's clock.

    The finding is red if the last block seems to be more than BLOCK_AHEAD in the
    future. Otherwise this machine's clock is compared with the explorers' clocks, and
    the smallest difference decides: green up to CLOCK_NEAR, yellow up to CLOCK_OFF,
    else red.
    """
    tips = []
    for probe in probes:
        if probe.tip_at and not probe.is_foreign:
            tips.append(probe.tip_at)
    if any(tip_at - shop.now() > BLOCK_AHEAD for tip_at in tips):
        sentence = "the chain's last block is hours ahead of it"
        yield Finding("clock", RED, sentence, SET_CLOCK)
        return
    differences = [abs(probe.ahead) for probe in probes if probe.ahead is not None]
    if not differences:
        sentence = "no explorer gave a time to compare it with"
        yield Finding("clock", YELLOW, sentence, EXPLORERS_FIRST)
        return
    difference = min(differences)
    seconds = difference // timedelta(seconds=1)
    sentence = f"{seconds} s from the nearest explorer's"
    if difference <= CLOCK_NEAR:
        yield Finding("clock", GREEN, sentence)
    elif difference <= CLOCK_OFF:
        yield Finding("clock", YELLOW, sentence, SET_CLOCK)
    else:
        yield Finding("clock", RED, sentence, SET_CLOCK)


def addresses_ahead(
    shop: Shop,
    db: Database,
    probes: Sequence[Probe],
    quota: Quota | None,
) -> Iterator[Finding]:
    """Yields a finding for each merchant: red if one of the next addresses is used already.

    A red finding means that another program gives out addresses of the same account, or
    that the database is an old copy. Examines at most MOST_MERCHANTS merchants.

    If `quota` is not None, stores the results and counts the calls in the quota. If no
    explorer works, yields the red findings that an earlier run has stored, and a yellow
    one.
    """
    good = [probe.url for probe in probes if not probe.trouble]
    rows = db.rows(merchants.ALL)
    if not good:
        sentence = "no explorer could be asked whether somebody else hands them out"
        yield Finding("addresses", YELLOW, sentence, EXPLORERS_FIRST)
        yield from map(_shared_account, filter(_is_known_shared, rows))
        return
    explorers = open_explorers(shop.settings, quota, urls=good)
    for merchant in rows[:MOST_MERCHANTS]:
        yield _addresses_of(merchant, explorers, shop, quota)
    if rows[MOST_MERCHANTS:]:
        sentence = f"{len(rows) - MOST_MERCHANTS} more merchants were not asked about"
        yield Finding("addresses", GREEN, sentence)


def _addresses_of(
    merchant: Merchant,
    explorers: Explorers,
    shop: Shop,
    quota: Quota | None,
) -> Finding:
    name = f"addresses of {merchant.name}"
    try:
        used = used_ahead(explorers, merchant, shop.settings.network)
    except ExplorerError as error:
        if _is_known_shared(merchant):
            return _shared_account(merchant)
        sentence = f"could not be asked about: {error}"
        return Finding(name, YELLOW, sentence, "try again later")
    if quota:
        note_used_ahead(quota.db, merchant, used, shop.now())
    if used:
        return _shared_account(merchant, used)
    start = merchant.next_index
    return Finding(name, GREEN, f"the next {AHEAD}, from {start} on, are unused")


def _is_known_shared(merchant: Merchant) -> bool:
    """True if an earlier look-up showed one of the next addresses as used."""
    known = merchant.used_ahead
    return known is not None and known >= merchant.next_index


def _shared_account(merchant: Merchant, used: Sequence[int | None] = ()) -> Finding:
    """Returns the finding that addresses are `used`; by default the stored one."""
    numbers = ", ".join(map(str, used or [merchant.used_ahead]))
    start = merchant.next_index
    return Finding(
        f"addresses of {merchant.name}",
        RED,
        f"number {numbers} is used on the chain, but the next one is {start}",
        "this is an old copy of the database, or another program uses the same account: give the"
        " service an account of its own, and run `blocktill restore --in-place`",
    )
