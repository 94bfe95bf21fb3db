"""All addresses to be watched, read from the database for the plan; and what was planned, noted."""

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
from storage.queries import merchants, meta, payments, watched

AHEAD_MS = 60_000  # so much may the clocks of two machines differ
# An explorer that falsely said that one coin was spent may have said so of others: within a week,
# since nobody keeps using an explorer that lies for longer.
DOUBTFUL_MS = 7 * 86_400_000


def tip_of(db: Database, now: datetime) -> Tip:
    """The best block as the last check saw it."""
    seen_at = meta.time(db, meta.Key.TIP_AT) or from_ms(0)
    return Tip(meta.tip_height(db) or 0, min(seen_at, now))


@dataclass(frozen=True)
class Watchlist:
    """All addresses that are watched at one moment.

    `probes`: the addresses that are a merchant's hourly probe, and the merchant. `moved`: merchants
    all of whose coins were asked for after one had moved, and when it had; `unspent`: likewise
    after one was there after all.
    """

    addresses: list[Watched]
    probes: dict[str, int]
    moved: dict[int, int]
    unspent: dict[int, int]

    def todo(self, ids: Sequence[str]) -> Todo:
        """These in their order, but those that killed an earlier run come last."""
        known = {address.id: address for address in self.addresses}
        order = sorted(ids, key=lambda id: known[id].unended)
        alone = frozenset(id for id in order if known[id].unended)
        return Todo({id: known[id].scans for id in order}, alone)


def watchlist_of(db: Database, settings: Settings, now: datetime) -> Watchlist:
    """Every address to be scanned: while it is watched, and where a coin may have moved since."""
    watched_since = to_ms(now - timedelta(hours=settings.watch_after_expiry_h))
    waiting = _waiting(db)
    found = {
        row["id"]: _watched(settings, row, waiting[row["id"]], row["checked_at"], now)
        for row in db.rows(watched.WATCHED, finished_after=watched_since)
    }
    watchlist = Watchlist([], {}, {}, {})
    at = {"before": to_ms(now - PROBE_EVERY), "now": to_ms(now)}
    for merchant in db.rows(merchants.TO_PROBE, **at):
        coins = {"merchant_id": merchant["id"], "finished_after": watched_since}
        for row, since in _coins(db, watchlist, merchant, coins, at):
            found.setdefault(row["id"], _watched(settings, row, (), since, now))
    watchlist.addresses.extend(found.values())
    return watchlist


def _coins(
    db: Database, watchlist: Watchlist, merchant: Row, coins: Row, at: dict[str, int]
) -> Iterator[tuple[Row, int | None]]:
    """A merchant's coins to be asked for although their watch has ended, and since when they wait.

    Notes in `watchlist` the hour's probes, and which merchants' coins have all been asked for.
    """
    if (moved_at := merchant["swept_at"]) is not None:
        moved = db.rows(watched.FUNDED, checked_before=moved_at, **coins)
        yield from ((row, moved_at) for row in moved)
        if not moved or moved_at > at["now"]:
            watchlist.moved[merchant["id"]] = moved_at
    if (unspent_at := merchant["unspent_at"]) is not None:
        told = {"checked_before": unspent_at, "spent_after": unspent_at - DOUBTFUL_MS}
        doubtful = db.rows(watched.SAID_SPENT, **told, **coins)
        yield from ((row, unspent_at) for row in doubtful)
        if not doubtful or unspent_at > at["now"]:
            watchlist.unspent[merchant["id"]] = unspent_at
    probed_at = merchant["probed_at"]
    if probed_at is None or not at["before"] <= probed_at <= at["now"]:
        for row in db.rows(watched.PROBE, **coins) + db.rows(watched.PROBE_SPENT, **coins):
            watchlist.probes[row["id"]] = merchant["id"]
            yield row, probed_at


def note_probes(db: Database, watchlist: Watchlist, ids: Sequence[str], now: datetime) -> None:
    """Starts the hour until a merchant's next probe, and ends what a moved coin has begun."""
    for invoice_id in watchlist.probes.keys() & set(ids):
        db.run(merchants.PROBED, id=watchlist.probes[invoice_id], at=to_ms(now))
    for merchant_id, moved_at in watchlist.moved.items():
        db.run(merchants.COIN_MOVED_DONE, id=merchant_id, swept_at=moved_at)
    for merchant_id, unspent_at in watchlist.unspent.items():
        db.run(merchants.UNSPENT_DONE, id=merchant_id, unspent_at=unspent_at)


def _waiting(db: Database) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in db.rows(payments.WAITING):
        found[row["invoice_id"]].append(row)
    return found


def _watched(
    settings: Settings, row: Row, outputs: Sequence[Row], waits_since: int | None, now: datetime
) -> Watched:
    """`waits_since`: the last scan, or whatever else began its wait."""
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
        scans=row["looks"],
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
