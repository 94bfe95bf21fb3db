"""Examines whether checks complete, open pages are current, and all blocks are searched.

A check is a run of `blocktill check`, which looks for payments.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from btcpay.chain.progress import Progress
from btcpay.health.doctor.shop import Shop
from btcpay.health.state import State, state_in
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from btcpay.values.times import iso
from storage.database import Database
from storage.queries import meta

CHECK_REMEDY = (
    "`blocktill run` checks by itself,"
    " else run `blocktill check` every minute; read its log"
)
PREVIEWS_REMEDY = (
    "read the check's warnings; without one raise BLOCKTILL_EXPLORER_CALLS_PER_HOUR, or use"
    " your own explorer"
)
BEHIND_REMEDY = (
    "run `blocktill check`; BLOCKTILL_EXPLORER_CALLS_PER_HOUR says how fast it may read"
)


def state(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields three findings: about the check, open pages, and the chain."""
    now = shop.now()
    current = state_in(db, shop.settings, now)
    yield _check(current, now)
    yield _previews(current)
    if current.progress is None:
        yield _no_chain(meta.get(db, meta.Key.NOT_BEGUN) or "")
    else:
        yield _chain(current, current.progress, now)


def _check(current: State, now: datetime) -> Finding:
    sentence = "no check has been complete yet"
    if current.checked_at:
        sentence = f"the last complete check was at {iso(current.checked_at)}"
    if current.payments == GREEN:
        return Finding("check", GREEN, sentence)
    if current.checked_at:
        minutes = (now - current.checked_at) // timedelta(minutes=1)
        sentence += f", {minutes} minutes ago"
    return Finding("check", current.payments, sentence, CHECK_REMEDY)


def _previews(current: State) -> Finding:
    if current.previews == GREEN:
        return Finding("previews", GREEN, "every open page was looked up in time")
    pages = f"{current.previews_late} open pages"
    if current.previews_late == 1:
        pages = "1 open page"
    sentence = f"{pages} will show a payment late: no mempool was asked in time; none is missed"
    return Finding("previews", current.previews, sentence, PREVIEWS_REMEDY)


def _no_chain(not_begun: str) -> Finding:
    """Returns the finding for a database without blocks.

    `not_begun` is the reason why reading cannot begin; "" if the next check may begin.
    """
    if not_begun:
        sentence = f"reading cannot begin, and no payment is found: {not_begun}"
        remedy = (
            "repair what is red below, or name other explorers in BLOCKTILL_EXPLORERS"
        )
        return Finding("chain", RED, sentence, remedy)
    return Finding("chain", GREEN, "no block is known: the next check begins to read")


def _chain(current: State, progress: Progress, now: datetime) -> Finding:
    sentence = f"at block {progress.height} of {iso(progress.mined_at)}"
    if current.chain == RED:
        minutes = (now - progress.mined_at) // timedelta(minutes=1)
        sentence += f", {minutes} minutes ago: nothing expires meanwhile"
        remedy = "see whether the explorers show a newer block"
        return Finding("chain", RED, sentence, remedy)
    if current.chain == YELLOW:
        blocks = f"{progress.behind} blocks are"
        if progress.behind == 1:
            blocks = "1 block is"
        sentence += f", {blocks} still to be read"
        return Finding("chain", YELLOW, sentence, BEHIND_REMEDY)
    return Finding("chain", GREEN, f"{sentence}, every block is read")
