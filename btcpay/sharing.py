"""Several runners of a check at once, on one server: each looks at its share of what is due."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice

from btcpay.instants import to_ms
from storage import claims
from storage.database import Database

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
