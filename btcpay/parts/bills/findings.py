"""Results for `blocktill doctor` about series of bills that wait for the owner."""

from collections.abc import Iterator
from datetime import datetime

from btcpay import hooks
from btcpay.parts.bills import queries
from btcpay.settings.settings import Settings
from btcpay.values.finding import RED, Finding
from btcpay.values.times import iso_ms
from storage.database import Database

MOST = 20  # findings; the remaining series are only counted


def findings(settings: Settings, db: Database, now: datetime) -> Iterator[Finding]:
    """Yields a red result for each suspended series.

    After MOST series, one more result has the number of the others. A series is
    suspended if more than a year of its bills were missing, or if `blocktill bill undo`
    has undone bills whose period had begun.
    """
    suspended = db.rows(queries.HELD)
    for first in suspended[:MOST]:
        sentence = (
            f"the series {first.id} has missed the periods since {iso_ms(first.renews_ms or 0)},"
            " and makes no bill until you say so"
        )
        yield Finding("bills", RED, sentence, _remedy(first.id))
    if len(suspended) > MOST:
        more = f"so do {len(suspended) - MOST} more series"
        yield Finding("bills", RED, more, _remedy("ID"))


def _remedy(id: str) -> str:
    return (
        f"make them by `blocktill bill resume {id}`, a year of them at each check; pass over them"
        f" by `blocktill bill resume {id} --skip`; or end the series by `blocktill bill end {id}`"
    )


HOOK = hooks.Findings(findings=findings)
