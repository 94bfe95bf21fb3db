"""Nodes of the network: when each last answered in a check, and how far it was."""

from collections.abc import Iterator
from datetime import timedelta

from btcpay.health.doctor.finding import Finding, Shop
from btcpay.health.state import GREEN, RED, YELLOW
from btcpay.values.networks import AUTO
from btcpay.values.times import iso_ms, to_ms
from storage.database import Database
from storage.queries.totals import peers

LATELY = timedelta(hours=1)
REMEDY = "check that it runs and can be reached, or name another one in BTCPAY_PEERS"
KNOWN = timedelta(days=1)  # with `auto`: who was good before is none of ours any more


def findings(shop: Shop, db: Database) -> Iterator[Finding]:
    """What the last checks noted: nobody is asked. Red: none answers any more, nothing is paid."""
    wanted, now_ms = shop.settings.peers, to_ms(shop.now())
    rows = {row["place"]: row for row in db.rows(peers.ALL)}
    if wanted == (AUTO,):
        since_ms = to_ms(shop.now() - KNOWN)
        wanted = tuple(one for one, row in rows.items() if (row["good_at"] or 0) > since_ms)
        if not wanted:
            yield Finding(
                "peers", YELLOW, "none was found yet", "let `btcpay check` run, and see its log"
            )
    since_ms = to_ms(shop.now() - LATELY)
    good = {one for one in wanted if one in rows and (rows[one]["good_at"] or 0) > since_ms}
    for place in wanted:
        row = rows.get(place, {"good_at": None, "left_until": None, "height": None})
        if (row["left_until"] or 0) > now_ms:
            said = f"gave false answers, or none: not asked until {iso_ms(row['left_until'])}"
        elif place in good:
            ago_s = (now_ms - row["good_at"]) // 1000
            yield Finding(f"peer {place}", GREEN, f"at block {row['height']}, {ago_s} s ago")
            continue
        else:
            when = f"since {iso_ms(row['good_at'])}" if row["good_at"] else "any check"
            said = f"has not answered {when}"
        is_lost = not good and row["good_at"]
        yield Finding(f"peer {place}", RED if is_lost else YELLOW, said, REMEDY)
