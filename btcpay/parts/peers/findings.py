"""Results for `blocktill doctor` about peers: their last responses and their heights."""

from collections.abc import Iterator, Mapping, Sequence
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
# With `auto`, if no peer has responded recently, the peers that have responded within
# this time are reported.
KNOWN_FOR = timedelta(days=1)


def findings(settings: Settings, db: Database, now: datetime) -> Iterator[Finding]:
    """Yields a result for each peer, and one about listening for unconfirmed transactions.

    Yields nothing if no peers are set. If the program chooses the peers (AUTO), the
    results are about the peers that have responded lately, or else about those that have
    responded within KNOWN_FOR. No peer is contacted: the results are based on what the
    last checks have stored. A peer with trouble is yellow. But if no peer has responded
    lately, a peer that responded before is red.
    """
    if not settings.peers:
        return
    rows = {row.place: row for row in db.rows(PEERS)}
    last_check = meta.time(db, meta.Key.RAN_MS) or now - LATELY
    responded_lately = _good_since(rows, max(now - LATELY, last_check))
    places: Sequence[str] = settings.peers
    if places == (AUTO,):
        places = responded_lately or _good_since(rows, now - KNOWN_FOR)
        if not places:
            remedy = "run `blocktill check`, and see its log"
            yield Finding("peers", YELLOW, "none was found yet", remedy)
    good = set(responded_lately).intersection(places)
    top = max((rows[place].height or 0 for place in good), default=0)
    for place in places:
        row = rows.get(place) or blank(Peer)
        trouble = _trouble(row, place in good, top, now)
        if trouble:
            are_all_silent = not good
            yield _trouble_finding(place, row, trouble, are_all_silent)
        else:
            ago_s = (to_ms(now) - (row.good_ms or 0)) // 1000
            sentence = f"at block {row.height}, {ago_s} s ago"
            yield Finding(f"peer {place}", GREEN, sentence)
    yield _listening_finding(settings, db)


def _trouble_finding(
    place: str, row: Peer, trouble: str, are_all_silent: bool
) -> Finding:
    colour = YELLOW
    has_responded_before = bool(row.good_ms)
    if are_all_silent and has_responded_before:
        colour = RED
    return Finding(f"peer {place}", colour, trouble, REMEDY)


def _good_since(rows: Mapping[str, Peer], at: datetime) -> list[str]:
    """Returns the peers (host:port) that have responded since `at`."""
    return [place for place, row in rows.items() if (row.good_ms or 0) >= to_ms(at)]


def _trouble(row: Peer, is_good: bool, top: int, now: datetime) -> str:
    """Returns the problem with a peer; "" if there is none.

    `top` is the height of the highest peer that has responded lately.
    """
    if row.left_until and row.left_until > to_ms(now):
        until = iso_ms(row.left_until)
        return f"gave false answers, or none: not asked until {until}"
    if is_good:
        if (row.height or 0) >= top - MAX_BLOCKS_BEHIND:
            return ""
        height = row.height or "unknown"
        return f"at block {height}, behind the others, which are at {top}"
    if row.good_ms:
        return f"has not answered since {iso_ms(row.good_ms)}"
    return "has not answered any check"


def _listening_finding(settings: Settings, db: Database) -> Finding:
    if meta.get(db, meta.Key.LISTENS):
        return Finding("listening", GREEN, "the check stays, and listens")
    colour = YELLOW
    if settings.explorers:  # explorers show unconfirmed transactions
        colour = GREEN
    sentence = "the last check did not listen"
    return Finding("listening", colour, sentence, "`blocktill check --watch`")


HOOK = hooks.Findings(findings=findings)
