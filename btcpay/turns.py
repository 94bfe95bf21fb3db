"""Reads from the database what the schedule plans with, and remembers what it has planned."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.instants import from_ms, from_ms_or_none, to_ms
from btcpay.schedule import PROBE_EVERY
from btcpay.settings import Settings
from btcpay.standing import rules_for
from btcpay.urgency import Tip, Waiting, Watched, ready_height
from storage import invoices, merchants, meta, payments
from storage.database import Database, Row

AHEAD_MS = 60_000  # clocks of two machines may differ by so much


def tip_of(db: Database, now: datetime) -> Tip:
    """The best block as the last check saw it."""
    seen_at = from_ms(int(meta.get(db, "tip_at") or 0))
    return Tip(meta.tip_height(db) or 0, min(seen_at, now))


@dataclass(frozen=True)
class Field:
    """All addresses of one moment.

    `probes`: those that are their merchant's hourly probe, and whose. `swept`: merchants, all of
    whose coins were looked at since one had moved, and since when.
    """

    addresses: list[Watched]
    probes: dict[str, int]
    swept: dict[int, int]


def field_of(db: Database, settings: Settings, now: datetime) -> Field:
    """Every address that is looked at: while watched, and where a coin may have moved since."""
    watched_since = to_ms(now - timedelta(hours=settings.watch_after_expiry_h))
    waiting = _waiting(db)
    found = {
        row["id"]: _watched(settings, row, waiting[row["id"]], row["checked_at"], now)
        for row in db.rows(invoices.WATCHED, finished_after=watched_since)
    }
    probes: dict[str, int] = {}
    swept: dict[int, int] = {}
    at = {"before": to_ms(now - PROBE_EVERY), "now": to_ms(now)}
    for merchant in db.rows(merchants.TO_PROBE, **at):
        coins = {"merchant_id": merchant["id"], "finished_after": watched_since}
        probed_at, swept_at = merchant["probed_at"], merchant["swept_at"]
        if swept_at is not None:
            unseen = db.rows(invoices.FUNDED, checked_before=swept_at, **coins)
            for row in unseen:
                found.setdefault(row["id"], _watched(settings, row, (), swept_at, now))
            if not unseen or swept_at > at["now"]:
                swept[merchant["id"]] = swept_at
        if probed_at is None or not at["before"] <= probed_at <= at["now"]:
            for row in db.rows(invoices.PROBE, **coins):
                probes[row["id"]] = merchant["id"]
                found.setdefault(row["id"], _watched(settings, row, (), probed_at, now))
    return Field(list(found.values()), probes, swept)


def note_probes(db: Database, field: Field, looks: Sequence[str], now: datetime) -> None:
    """Starts the hour until a merchant's next probe, and ends what a moved coin has begun."""
    for invoice_id in field.probes.keys() & set(looks):
        db.run(merchants.PROBED, id=field.probes[invoice_id], at=to_ms(now))
    for merchant_id, swept_at in field.swept.items():
        db.run(merchants.SWEEP_DONE, id=merchant_id, swept_at=swept_at)


def _waiting(db: Database) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in db.rows(payments.WAITING):
        found[row["invoice_id"]].append(row)
    return found


def _watched(
    settings: Settings, row: Row, outputs: Sequence[Row], waits_since: int | None, now: datetime
) -> Watched:
    """`waits_since`: the last look, or what else its waiting began with."""
    confirmations = rules_for(settings, row).confirmations
    return Watched(
        id=row["id"],
        status=row["status"],
        since=from_ms(row["created_at"]),
        checked_at=_past(waits_since, now),
        asked_at=_past(row["asked_at"], now),
        asked_since=_past(row["asked_since"], now),
        came_at=_past(row["came_at"], now),
        expires_at=from_ms_or_none(row["expires_at"]),
        failed_at=_past(row["failed_at"], now),
        failures=row["failures"],
        doubted=row["doubted_at"] is not None,
        has_history=row["came_at"] is not None,
        is_covered=sum(output["amount_sats"] for output in outputs) >= row["amount_sats"],
        looks=row["looks"],
        waiting=tuple(
            Waiting(
                ready_height(output["block_height"], bool(output["coinbase"]), confirmations)
                if output["proven"]
                else None
            )
            for output in outputs
        ),
        confirmations=confirmations,
    )


def _past(ms: int | None, now: datetime) -> datetime | None:
    """The time, unless it is to come: then the clock was ahead when it was written."""
    return None if ms is None or ms > to_ms(now) + AHEAD_MS else from_ms(ms)
