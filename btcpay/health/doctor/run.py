"""The whole examination, in the order in which to repair."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from peewee import PeeweeException

from btcpay.chain.explorers.open import open_quota
from btcpay.health.doctor import chain, database, disk, explorers, mail, prices, records, webhooks
from btcpay.health.doctor.finding import GREEN, RED, Finding, Opened, Patient
from btcpay.health.doctor.settings import findings as settings_findings
from btcpay.settings.settings import Settings
from storage.database import Database, in_one_line
from storage.queries import blocks


def free_bytes(folder: Path) -> int:
    """How much is free on the folder's file system."""
    return shutil.disk_usage(folder).free


def examine(
    settings: Settings,
    environ: Mapping[str, str],
    now: Callable[[], datetime],
    free_bytes: Callable[[Path], int] = free_bytes,
    integrity: bool = False,
) -> Iterator[Finding]:
    """Every finding. Without a database of this version, those that need none.

    A database that takes no writes is still read; then calls are not counted. With `integrity` all
    of it is read: each page of the file, each output that the balances sum up.

    Makes at most 3 calls to each explorer, then 10 for each of 20 merchants. They count in the
    hour's quota.
    """
    patient = Patient(settings, environ, now, free_bytes)
    found, db = database.look_into(settings, integrity)
    yield found
    yield from disk.modes(patient)
    yield from disk.free_space(patient)
    if db:
        opened = Opened(patient, db)
        for look_into in (
            records.merchant_count,
            *((records.totals,) if integrity else ()),
            records.last_check,
            records.chain,
            records.attention,
            records.gaps,
            webhooks.told,
            mail.outbox,
        ):
            yield from _told(look_into.__name__, look_into(opened))
    yield from _told("explorers", _outside(patient, db if found.colour == GREEN else None))
    yield from prices.findings(patient)
    if db:
        yield from _told("second currencies", prices.second(Opened(patient, db)))
    yield from mail.server(patient)
    yield from settings_findings(patient)
    if db:
        db.close()


def _told(name: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings; when the database fails, a last one says so, and the examination goes on."""
    try:
        yield from findings
    except PeeweeException as error:
        sentence = f"could not be examined further: {in_one_line(error)}"
        yield Finding(name, RED, sentence, "repair the database first")


def _outside(patient: Patient, db: Database | None) -> Iterator[Finding]:
    quota = open_quota(patient.settings, db, patient.now) if db else None
    known_height = blocks.tip_height(db) or 0 if db else 0
    visits = explorers.visit_all(patient, quota, known_height)
    yield from explorers.findings(visits)
    yield from chain.clock(patient, visits)
    if db and quota:
        yield from chain.addresses_ahead(Opened(patient, db), visits, quota)
        quota.give_back()
