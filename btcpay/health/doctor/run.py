"""Runs all examinations, in the order in which faults should be repaired."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from btcpay import hooks
from btcpay.chain.explorers.quota import Quota
from btcpay.health.doctor import (
    addresses,
    database,
    explorers,
    health,
    prices,
    receivers,
    records,
)
from btcpay.health.doctor import settings as variables
from btcpay.health.doctor.probe import NextAddress, probe_all
from btcpay.health.doctor.shop import Shop
from btcpay.settings.settings import Settings
from btcpay.values.finding import GREEN, RED, Finding
from btcpay.values.networks import BlockId
from storage.database import Database, in_one_line
from storage.faults import PeeweeException
from storage.queries import blocks


def parts(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields the findings of parts (optional plug-ins) about themselves."""
    for name, part in hooks.by_part(hooks.Findings).items():
        yield from _guard(name, part.findings(shop.settings, db, shop.now()))


# Examinations that need the database. `totals` runs only with `integrity`.
TABLE = (
    records.merchant_count,
    records.totals,
    health.state,
    records.time,
    records.work,
    records.attention,
    records.gaps,
    parts,
    receivers.webhooks,
    receivers.mail,
)


def examine(
    settings: Settings,
    environ: Mapping[str, str],
    now: Callable[[], datetime],
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    integrity: bool = False,
) -> Iterator[Finding]:
    """Runs all examinations, and yields their findings.

    If the database cannot be read, the findings that need it are left out. Each explorer
    gets about ten calls, and there are about ten more calls for each of at most 20
    merchants. If the database can be written, these calls count in the hourly quota.

    - `environ`: the environment variables.
    - `now`: returns the time.
    - `free_bytes`: returns the free bytes on the disk of a folder.
    - `integrity`: if True, also checks each page of a SQLite file, and adds up all
      outputs of each balance.
    """
    shop = Shop(settings, environ, now, free_bytes)
    finding, db = database.examine(settings, integrity)
    yield finding
    yield from database.modes(shop)
    yield from database.free_space(shop)
    if db:
        for examination in TABLE:
            if examination is records.totals and not integrity:
                continue
            findings = examination(shop, db)
            yield from _guard(examination.__name__, findings)
    if settings.explorers:  # sources of a part (a plug-in) are not probed here
        writable_db = None  # calls are counted only in a database that takes writes
        if finding.colour == GREEN:
            writable_db = db
        yield from _guard("explorers", _explorers(shop, writable_db))
    yield from addresses.ipv6(shop)
    yield from prices.findings(shop)
    if db:
        yield from _guard("other currencies", prices.other_currencies(shop, db))
    yield from _guard("mail server", receivers.mail_server(shop, db))
    yield from variables.findings(shop)
    if db:
        db.close()


def _guard(name: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yields the findings. If the database fails, ends with a red finding about that.

    `name` is the name of the red finding.
    """
    try:
        yield from findings
    except PeeweeException as error:
        sentence = f"could not be examined further: {in_one_line(error)}"
        yield Finding(name, RED, sentence, "repair the database first")


def _explorers(shop: Shop, db: Database | None) -> Iterator[Finding]:
    """Yields the findings about explorers, and about this machine's clock.

    If `db` is not None, the calls are counted, the explorers are compared with the
    stored chain, and the merchants' next addresses are examined.
    """
    quota = None
    known_height = 0
    first = None
    next_addresses: list[NextAddress] = []
    if db:
        quota = Quota(db, shop.settings.explorer_calls_per_hour, shop.now)
        known_height = blocks.tip_height(db) or 0
        row = db.get_or_none(blocks.FIRST)
        if row:
            first = BlockId(row.height, row.hash)
        next_addresses = explorers.next_addresses(shop, db)
    probes = probe_all(shop, quota, known_height, first, next_addresses)
    yield from explorers.findings(probes)
    yield from explorers.clock(shop, probes)
    if db:
        yield from explorers.addresses_ahead(shop, db, probes, quota)
