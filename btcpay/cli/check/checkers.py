"""Creates the Checker of each run of `blocktill check`."""

from collections.abc import Callable

from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.explorers.quota import Quota, Reserve
from btcpay.chain.pool import open_sources
from btcpay.check.record import RunRecord
from btcpay.check.report import Report
from btcpay.check.run import Checker
from btcpay.cli.shell import Shell
from btcpay.http import http_client
from btcpay.prices.price import Prices
from btcpay.values.times import utc_now

# Concurrent calls to explorers: one for every 150 calls of the hourly quota, at most 16. The
# default quota of 600, for public explorers, gives four.
MOST_IN_FLIGHT = 16
HOURLY_FOR_ONE = 150
# --watch counts calls in the database in advance, at most a fifth of the hourly quota at a time:
# counting each call by itself would be many writes to the disk. Calls that are left when the
# process ends are lost for that hour.
RESERVED_PART = 5


def checker_factory(
    shell: Shell,
    per_hour: int = 0,
    hear: Callable[[Report], None] | None = None,
    record: RunRecord | None = None,
) -> Callable[[], Checker]:
    """Returns a function that creates the Checker of a run.

    All checkers share one HTTP session and one Prices object.

    - `per_hour`: replaces the hourly quota of explorer calls in the settings; 0 keeps it.
    - `hear`: a function by which each checker applies announced transactions.
    - `record`: one record that all runs share, so that runs without news store little. If
      it is None, each run has a record of its own.
    """
    settings = shell.settings
    prices = Prices(settings)
    per_hour = per_hour or settings.explorer_calls_per_hour
    in_flight = max(1, min(MOST_IN_FLIGHT, per_hour // HOURLY_FOR_ONE))
    session = http_client.Session(in_flight, settings.proxy)

    reserve = Reserve()
    if record:
        reserve = Reserve(per_hour // RESERVED_PART)
    quota = Quota(shell.db, per_hour, utc_now, reserve)

    def new_checker() -> Checker:
        explorers = open_explorers(settings, quota, session)
        sources = open_sources(settings, shell.db, utc_now) or explorers
        return Checker(
            db=shell.db,
            settings=settings,
            sources=sources,
            prices=prices,
            now=utc_now,
            explorers=explorers,
            in_flight=in_flight,
            hear=hear,
            record=record or RunRecord(),
        )

    return new_checker
