"""The doctor's lines about bills: the series that wait for the owner's decision."""

from collections.abc import Iterator
from datetime import datetime

from btcpay import hooks
from btcpay.parts.bills import queries
from btcpay.settings.settings import Settings
from btcpay.values.finding import RED, Finding
from btcpay.values.times import iso_ms
from storage.database import Database

MOST = 20  # lines; the others are counted


def findings(settings: Settings, db: Database, now: datetime) -> Iterator[Finding]:
    """Red for each series that is held.

    A year of its bills was made at once, or some of them were undone.
    """
    held = db.rows(queries.HELD)
    for first in held[:MOST]:
        sentence = (
            f"the series {first.id} has missed the periods since {iso_ms(first.renews_ms or 0)},"
            " and makes no bill until you say so"
        )
        yield Finding("bills", RED, sentence, _remedy(first.id))
    if len(held) > MOST:
        more = f"so do {len(held) - MOST} more series"
        yield Finding("bills", RED, more, _remedy("ID"))


def _remedy(id: str) -> str:
    return (
        f"make them by `blocktill bill resume {id}`, a year of them at each check; pass over them"
        f" by `blocktill bill resume {id} --skip`; or end the series by `blocktill bill end {id}`"
    )


HOOK = hooks.Findings(findings=findings)
