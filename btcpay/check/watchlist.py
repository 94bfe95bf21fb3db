"""Reads from the database what the schedule plans with, and remembers what it has planned."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.check.line import Todo
from btcpay.check.plan import PROBE_EVERY
from btcpay.check.urgency import Tip, Waiting, Watched, ready_height
from btcpay.invoices.status import rules_for
from btcpay.settings import Settings
from btcpay.times import from_ms, from_ms_or_none, to_ms
from storage.database import Database, Row
from storage.queries import invoices, merchants, meta, payments

AHEAD_MS = 60_000  # clocks of two machines may differ by so much
# Who said falsely that a coin is spent has said so of others: a week, since nobody leaves an
# explorer that lies for longer in place.
DOUBTFUL_MS = 7 * 86_400_000


def tip_of(db: Database, now: datetime) -> Tip:
    """The best block as the last check saw it."""
    seen_at = meta.time(db, meta.Key.TIP_AT) or from_ms(0)
    return Tip(meta.tip_height(db) or 0, min(seen_at, now))


@dataclass(frozen=True)
class Field:
    """All addresses of one moment.

    `probes`: those that are their merchant's hourly probe, and whose. `swept`: merchants, all of
    whose coins were looked at since one had moved, and since when; `unspent` likewise since one
    was there after all.
    """

    addresses: list[Watched]
    probes: dict[str, int]
    swept: dict[int, int]
    unspent: dict[int, int]

    def todo(self, ids: Sequence[str]) -> Todo:
        """These in their order, but last those that an earlier run did not survive."""
        known = {address.id: address for address in self.addresses}
        order = sorted(ids, key=lambda id: known[id].unended)
        alone = frozenset(id for id in order if known[id].unended)
        return Todo({id: known[id].looks for id in order}, alone)


def field_of(db: Database, settings: Settings, now: datetime) -> Field:
    """Every address that is looked at: while watched, and where a coin may have moved since."""
    watched_since = to_ms(now - timedelta(hours=settings.watch_after_expiry_h))
    waiting = _waiting(db)
    found = {
        row["id"]: _watched(settings, row, waiting[row["id"]], row["checked_at"], now)
        for row in db.rows(invoices.WATCHED, finished_after=watched_since)
    }
    field = Field([], {}, {}, {})
    at = {"before": to_ms(now - PROBE_EVERY), "now": to_ms(now)}
    for merchant in db.rows(merchants.TO_PROBE, **at):
        coins = {"merchant_id": merchant["id"], "finished_after": watched_since}
        for row, since in _coins(db, field, merchant, coins, at):
            found.setdefault(row["id"], _watched(settings, row, (), since, now))
    field.addresses.extend(found.values())
    return field


def _coins(
    db: Database, field: Field, merchant: Row, coins: Row, at: dict[str, int]
) -> Iterator[tuple[Row, int | None]]:
    """A merchant's coins to be asked for after their watch, and since when they wait for it.

    Notes in `field` the hour's probes, and what has been asked for to its end.
    """
    if (swept_at := merchant["swept_at"]) is not None:
        moved = db.rows(invoices.FUNDED, checked_before=swept_at, **coins)
        yield from ((row, swept_at) for row in moved)
        if not moved or swept_at > at["now"]:
            field.swept[merchant["id"]] = swept_at
    if (unspent_at := merchant["unspent_at"]) is not None:
        told = {"checked_before": unspent_at, "spent_after": unspent_at - DOUBTFUL_MS}
        doubtful = db.rows(invoices.SAID_SPENT, **told, **coins)
        yield from ((row, unspent_at) for row in doubtful)
        if not doubtful or unspent_at > at["now"]:
            field.unspent[merchant["id"]] = unspent_at
    probed_at = merchant["probed_at"]
    if probed_at is None or not at["before"] <= probed_at <= at["now"]:
        for row in db.rows(invoices.PROBE, **coins) + db.rows(invoices.PROBE_SPENT, **coins):
            field.probes[row["id"]] = merchant["id"]
            yield row, probed_at


def note_probes(db: Database, field: Field, looks: Sequence[str], now: datetime) -> None:
    """Starts the hour until a merchant's next probe, and ends what a moved coin has begun."""
    for invoice_id in field.probes.keys() & set(looks):
        db.run(merchants.PROBED, id=field.probes[invoice_id], at=to_ms(now))
    for merchant_id, swept_at in field.swept.items():
        db.run(merchants.SWEEP_DONE, id=merchant_id, swept_at=swept_at)
    for merchant_id, unspent_at in field.unspent.items():
        db.run(merchants.UNSPENT_DONE, id=merchant_id, unspent_at=unspent_at)


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
        failed_at=_past(row["begun_at"] if row["begun"] else row["failed_at"], now),
        failures=row["failures"] + row["begun"],
        unended=row["begun"],
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
