"""The doctor's lines about peers: when each last answered, its height, and who listens to them."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from btcpay import hooks
from btcpay.chain.sources import MAX_BLOCKS_BEHIND
from btcpay.settings.settings import Settings
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from btcpay.values.networks import AUTO
from btcpay.values.times import iso_ms, to_ms
from storage.database import Database
from storage.models import Peer
from storage.queries import meta
from storage.queries.sources import PEERS
from storage.statement import blank

LATELY = timedelta(hours=1)
REMEDY = "check that it runs and can be reached, or name another one in BLOCKTILL_PEERS"
KNOWN = timedelta(
    days=1
)  # with `auto`, a peer that has not been good for so long is forgotten


def findings(settings: Settings, db: Database, now: datetime) -> Iterator[Finding]:
    """From notes of the last checks; no peer is asked. Red if none answers: nothing gets paid."""
    wanted = settings.peers
    if not wanted:
        return
    rows = {row.place: row for row in db.rows(PEERS)}

    def good_since(at: datetime) -> list[str]:
        return [one for one, row in rows.items() if (row.good_at or 0) >= to_ms(at)]

    lately = good_since(
        max(now - LATELY, meta.time(db, meta.Key.RAN_AT) or now - LATELY)
    )
    if wanted == (AUTO,):
        wanted = tuple(lately or good_since(now - KNOWN))
        if not wanted:
            yield Finding(
                "peers",
                YELLOW,
                "none was found yet",
                "run `blocktill check`, and see its log",
            )
    good = set(lately).intersection(wanted)
    top = max((rows[place].height or 0 for place in good), default=0)
    for place in wanted:
        row = rows.get(place) or blank(Peer)
        if row.left_until and row.left_until > to_ms(now):
            said = (
                f"gave false answers, or none: not asked until {iso_ms(row.left_until)}"
            )
        elif place in good and (row.height or 0) < top - MAX_BLOCKS_BEHIND:
            said = f"at block {row.height or 'unknown'}, behind the others, which are at {top}"
        elif place in good:
            ago_s = (to_ms(now) - (row.good_at or 0)) // 1000
            yield Finding(
                f"peer {place}", GREEN, f"at block {row.height}, {ago_s} s ago"
            )
            continue
        else:
            when = f"since {iso_ms(row.good_at)}" if row.good_at else "any check"
            said = f"has not answered {when}"
        is_lost = not good and row.good_at
        yield Finding(f"peer {place}", RED if is_lost else YELLOW, said, REMEDY)
    if meta.get(db, meta.Key.LISTENS):
        yield Finding("listening", GREEN, "the check stays, and listens")
    else:
        colour = GREEN if settings.explorers else YELLOW  # which show what waits
        yield Finding(
            "listening",
            colour,
            "the last check did not listen",
            "`blocktill check --watch`",
        )


HOOK = hooks.Findings(findings=findings)
