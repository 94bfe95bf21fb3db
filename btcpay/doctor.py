"""What `btcpay doctor` looks into: each finding with a colour, one line, and what helps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.instants import from_ms, iso
from btcpay.settings import Settings
from storage import balances, merchants, meta
from storage.database import Database

GREEN, YELLOW, RED = "green", "yellow", "red"
# Cron runs every minute; a quarter of an hour without a complete run is an explorer that is down.
CHECK_AGE = timedelta(minutes=15)


@dataclass(frozen=True)
class Finding:
    """What was looked into, how it stands, and what helps where it is not green."""

    name: str
    colour: str
    sentence: str
    remedy: str = ""


def examine(db: Database, settings: Settings, now: datetime) -> Iterator[Finding]:
    """Every finding, in the order in which to mend."""
    for look_into in EXAMINATIONS:
        yield from look_into(db, settings, now)


def totals(db: Database, _settings: Settings, _now: datetime) -> Iterator[Finding]:
    """Each merchant's balance is kept as a total; it must equal the sum of the rows."""
    for merchant in db.rows(merchants.ALL):
        of = {"merchant_id": merchant["id"]}
        with db.write():
            balances.lock(db, merchant["id"])
            kept, summed = (db.only(q, **of) for q in (balances.OF_MERCHANT, balances.RECOMPUTED))
        name = f"totals of {merchant['name']}"
        if kept == summed:
            told = f"{kept['confirmed_sats']} satoshis confirmed, {kept['total_sats']} in all"
            yield Finding(name, GREEN, told)
        else:
            yield Finding(
                name,
                RED,
                f"the balance says {kept}, its outputs sum up to {summed}",
                "the outputs are right: stop what writes to the database beside btcpay, and"
                " restore a backup or correct the row of `balance`",
            )


def last_check(db: Database, _settings: Settings, now: datetime) -> Iterator[Finding]:
    """Without a check nothing is ever paid."""
    checked_at = meta.get(db, "checked_at")
    remedy = "run `btcpay check` from cron every minute, and see what it says"
    if checked_at is None:
        yield Finding("check", YELLOW, "no check has been complete yet", remedy)
        return
    age = now - from_ms(int(checked_at))
    told = f"the last complete check was at {iso(from_ms(int(checked_at)))}"
    if age > CHECK_AGE:
        yield Finding("check", RED, f"{told}, {age // timedelta(minutes=1)} minutes ago", remedy)
    else:
        yield Finding("check", GREEN, told)


EXAMINATIONS: tuple[Callable[[Database, Settings, datetime], Iterator[Finding]], ...] = (
    totals,
    last_check,
)
