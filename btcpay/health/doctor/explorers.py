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

    The finding about an explorer is

    - yellow if the hourly quota of calls was used up before the explorer was tested;
    - red if the explorer is on another network;
    - yellow if it does not show the chain, but red if no explorer shows the chain, since
      then no payment is found;
    - yellow if it shows the chain, but no unconfirmed payments;
    - green otherwise.
    """
    good_hosts = [probe.host for probe in probes if not probe.trouble]
    if len(good_hosts) == 1 and len(probes) > 1:
        sentence = (
            f"only {good_hosts[0]} shows our chain:"
            " invoices end a day after their deadline"
        )
        yield Finding("second explorer", YELLOW, sentence, EXPLORERS_FIRST)
    # What an explorer would show is unknown if the quota is used up.
    no_chain = all(probe.trouble for probe in probes if not probe.is_spent)
    for probe in probes:
        yield _of_explorer(probe, no_chain)


def _of_explorer(probe: Probe, no_chain: bool) -> Finding:
    """Returns the finding about an explorer. `no_chain`: no explorer shows the chain."""
    name = f"explorer {probe.host}"
    if probe.trouble:
        colour = YELLOW
        if not probe.is_spent and (no_chain or probe.is_foreign):
            colour = RED
        return Finding(name, colour, probe.trouble, probe.remedy)
    if probe.blindness:
        return Finding(name, YELLOW, probe.blindness, probe.remedy)
    return Finding(name, GREEN, f"at block {probe.height}, with whole blocks")


def next_addresses(shop: Shop, db: Database) -> list[NextAddress]:
    """Returns the next address of one merchant for each script type that merchants use.

    The doctor looks up these addresses at each explorer, since an explorer may not
    support every script type.
    """
    network = shop.settings.network
    by_script_type: dict[bytes, NextAddress] = {}
    for merchant in db.rows(merchants.ALL)[:MOST_MERCHANTS]:
        script, address = at_index(merchant.descriptor, merchant.next_index, network)
        script_type = script[:KIND_BYTES]
        by_script_type.setdefault(script_type, NextAddress(address, script))
    return list(by_script_type.values())


def clock(shop: Shop, probes: Sequence[Probe]) -> Iterator[Finding]:
    """Yields a finding about this machine's clock.

    The finding is red if the last block seems to be more than BLOCK_AHEAD in the
    future. Otherwise this machine's clock is compared with the explorers' clocks, and
    the smallest difference decides: green up to CLOCK_NEAR, yellow up to CLOCK_OFF,
    else red.
    """
    tip_times = []
    for probe in probes:
        if probe.tip_at and not probe.is_foreign:
            tip_times.append(probe.tip_at)
    if any(tip_at - shop.now() > BLOCK_AHEAD for tip_at in tip_times):
        sentence = "the chain's last block is hours ahead of it"
        yield Finding("clock", RED, sentence, SET_CLOCK)
        return
    differences = [abs(probe.ahead) for probe in probes if probe.ahead is not None]
    if differences:
        yield _clock_difference(min(differences))
    else:
        sentence = "no explorer gave a time to compare it with"
        yield Finding("clock", YELLOW, sentence, EXPLORERS_FIRST)


def _clock_difference(difference: timedelta) -> Finding:
    """Returns the finding about the smallest difference from an explorer's clock."""
    seconds = difference // timedelta(seconds=1)
    sentence = f"{seconds} s from the nearest explorer's"
    if difference <= CLOCK_NEAR:
        return Finding("clock", GREEN, sentence)
    if difference <= CLOCK_OFF:
        return Finding("clock", YELLOW, sentence, SET_CLOCK)
    return Finding("clock", RED, sentence, SET_CLOCK)


def addresses_ahead(
    shop: Shop,
    db: Database,
    probes: Sequence[Probe],
    quota: Quota | None,
) -> Iterator[Finding]:
    """Yields a finding for each merchant: red if one of the next addresses is used already.

    A red finding means that another program gives out addresses of the same account, or
    that the database is an old copy. Examines at most MOST_MERCHANTS merchants.

    If `quota` is not None, stores the results, and counts the calls in the quota. If no
    explorer works, yields a yellow finding, and the red findings of an earlier run.
    """
    good_urls = [probe.url for probe in probes if not probe.trouble]
    rows = db.rows(merchants.ALL)
    if not good_urls:
        sentence = "no explorer could be asked whether somebody else hands them out"
        yield Finding("addresses", YELLOW, sentence, EXPLORERS_FIRST)
        for merchant in rows:
            if _is_known_shared(merchant):
                yield _shared_account(merchant, [merchant.used_ahead])
        return
    explorers = open_explorers(shop.settings, quota, urls=good_urls)
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
        used_indexes = used_ahead(explorers, merchant, shop.settings.network)
    except ExplorerError as error:
        if _is_known_shared(merchant):
            return _shared_account(merchant, [merchant.used_ahead])
        sentence = f"could not be asked about: {error}"
        return Finding(name, YELLOW, sentence, "try again later")
    if quota:
        note_used_ahead(quota.db, merchant, used_indexes, shop.now())
    if used_indexes:
        return _shared_account(merchant, used_indexes)
    start = merchant.next_index
    return Finding(name, GREEN, f"the next {AHEAD}, from {start} on, are unused")


def _is_known_shared(merchant: Merchant) -> bool:
    """True if an earlier look-up showed one of the next addresses as used."""
    known_index = merchant.used_ahead
    return known_index is not None and known_index >= merchant.next_index


def _shared_account(merchant: Merchant, used_indexes: Sequence[int | None]) -> Finding:
    """Returns the red finding that the addresses with these indexes are used."""
    numbers = ", ".join(map(str, used_indexes))
    start = merchant.next_index
    return Finding(
        f"addresses of {merchant.name}",
        RED,
        f"number {numbers} is used on the chain, but the next one is {start}",
        "this is an old copy of the database, or another program uses the same account: give the"
        " service an account of its own, and run `blocktill restore --in-place`",
    )
