"""Several runners of a check at once, on one server: each scans its share of what is due."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice

from btcpay.check.report import Report
from btcpay.times import to_ms
from storage.database import Database
from storage.queries import claims

# At its end a run waits so long for what others have claimed: their explorer may answer slowly.
PATIENCE_S, ASK_EVERY_S = 10, 0.2
# A runner that was killed blocks what it had claimed for so long: until cron's next minute.
CLAIM = timedelta(minutes=1)


@contextmanager
def share(
    db: Database,
    ids: Iterable[str],
    scans: Mapping[str, int],
    now: Callable[[], datetime],
    few: int,
) -> Iterator[Iterator[str]]:
    """Yields the ids that are this runner's, claimed `few` at a time as they are taken.

    `scans`: how often each had been scanned when this was planned. What was claimed and not scanned
    is given back at the end. No transaction is open during a scan.
    """
    claimed: list[tuple[list[str], int]] = []

    def mine() -> Iterator[str]:
        todo = iter(ids)
        while next_few := list(islice(todo, few)):
            now_ms, until_ms = to_ms(now()), to_ms(now() + CLAIM)
            free = claims.claim(db, next_few, scans, now_ms, until_ms)
            claimed.append((free, until_ms))
            yield from free

    try:
        yield mine()
    finally:
        for free, until_ms in claimed:
            claims.release(db, free, until_ms)


def scan_what_others_left(
    db: Database,
    scans: Mapping[str, int],
    report: Report,
    scan: Callable[[list[str]], None],
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """At the end of a run: waits until the others have scanned what they claimed, or scans it.

    `scan` takes what is free by now. What is still claimed after PATIENCE_S is `held`, by a runner
    that was killed or hangs. Nothing claimed any more means that all that was planned is done.
    """
    until_s = time.monotonic() + PATIENCE_S
    while True:
        tried = {*report.failed, *report.unreached}
        left = [one for one in claims.unseen(db, scans) if one not in tried]
        if not left:
            return
        before = report.scanned, len(report.failed), len(report.unreached)
        scan(left)
        if before != (report.scanned, len(report.failed), len(report.unreached)):
            continue
        if time.monotonic() >= until_s:
            report.held += left
            return
        pause(ASK_EVERY_S)
