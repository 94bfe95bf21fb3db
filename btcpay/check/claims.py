"""Several runners of a check at once, on one server: each looks at its share of what is due."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice

from btcpay.check.report import Run
from btcpay.times import to_ms
from storage.database import Database
from storage.queries import claims

# So long a run waits at its end for what others have claimed: an explorer that answers slowly.
PATIENCE_S, ASK_EVERY_S = 10, 0.2
# So long one that was killed keeps others from what it meant to look at: until cron's next minute.
CLAIM = timedelta(minutes=1)


@contextmanager
def share(
    db: Database,
    ids: Iterable[str],
    looks: Mapping[str, int],
    now: Callable[[], datetime],
    few: int,
) -> Iterator[Iterator[str]]:
    """Yields those of the ids that are this runner's, claimed `few` at a time as they are taken.

    `looks` has how often each was looked at when this was planned. What was claimed and not looked
    at is given back at the end. No transaction is open while a look goes on.
    """
    claimed: list[tuple[list[str], int]] = []

    def mine() -> Iterator[str]:
        todo = iter(ids)
        while next_few := list(islice(todo, few)):
            now_ms, until_ms = to_ms(now()), to_ms(now() + CLAIM)
            free = claims.claim(db, next_few, looks, now_ms, until_ms)
            claimed.append((free, until_ms))
            yield from free

    try:
        yield mine()
    finally:
        for free, until_ms in claimed:
            claims.release(db, free, until_ms)


def look_at_what_others_left(
    db: Database,
    looks: Mapping[str, int],
    run: Run,
    look_at: Callable[[list[str]], None],
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """At the end of a run: what others had claimed is looked at by them meanwhile, or by us.

    `look_at` takes what is free by now. What is claimed still after PATIENCE_S is `held`: a runner
    that was killed, or hangs. Who has claimed nothing any more has finished what is planned.
    """
    until_s = time.monotonic() + PATIENCE_S
    while True:
        tried = {*run.failed, *run.unreached}
        left = [one for one in claims.unseen(db, looks) if one not in tried]
        if not left:
            return
        before = run.looked_at, len(run.failed), len(run.unreached)
        look_at(left)
        if before != (run.looked_at, len(run.failed), len(run.unreached)):
            continue
        if time.monotonic() >= until_s:
            run.held += left
            return
        pause(ASK_EVERY_S)
