"""Finds out whether somebody else uses the next addresses of a merchant's account.

A payment to such an address is meant for somebody else, but would pay an invoice here.
The result is only a warning. If it moved the merchant's address counter, a lying
explorer could move the counter beyond the addresses that the merchant's wallet watches.
"""

import logging
from datetime import datetime, timedelta

from btcpay.bitcoin.address import address_of
from btcpay.bitcoin.descriptor import parse
from btcpay.chain.explorers.pool import Explorers
from btcpay.values.errors import ExplorerError
from btcpay.values.networks import Network
from btcpay.values.times import to_ms
from storage.database import Database
from storage.models import Merchant
from storage.queries import merchants

log = logging.getLogger(__name__)

AHEAD = 10  # number of next addresses that are looked up
AGAIN_AFTER_FAILURE = timedelta(hours=1)
# The look-up is made only while more than a half of the hour's calls is left.
SPARED_PART = 2


def used_ahead(explorers: Explorers, merchant: Merchant, network: Network) -> list[int]:
    """Returns the indexes of used addresses among the merchant's next AHEAD addresses.

    Raises ExplorerError if no explorer gives an answer for one of the addresses.
    """
    account = parse(merchant.descriptor)
    used = []
    for index in range(merchant.next_index, merchant.next_index + AHEAD):
        if explorers.is_used(address_of(account.script(index), network)):
            used.append(index)
    return used


def note_used_ahead(
    db: Database,
    merchant: Merchant,
    used: list[int],
    now: datetime,
) -> None:
    """Stores the highest address index that somebody else uses; None if there is none.

    `used` is the result of `used_ahead`. The merchant's pages show the stored index. The
    next look-up is due in a day.
    """
    due_ms = to_ms(now) + merchants.LOOK_AHEAD_EVERY_MS
    highest = max(used, default=None)
    db.run(
        merchants.LOOKED_AHEAD,
        id=merchant.id,
        used_ahead=highest,
        look_ahead_ms=due_ms,
    )


def look_ahead_if_due(
    db: Database,
    explorers: Explorers,
    network: Network,
    now: datetime,
) -> None:
    """Looks up the next addresses of one merchant, if that is due and enough calls are left.

    If the look-up fails, the former result stays stored, and the next look-up is due in
    an hour.
    """
    allowance = explorers.allowance()
    has_spare_calls = allowance.left * SPARED_PART > allowance.per_hour
    if not has_spare_calls:
        return
    now_ms = to_ms(now)
    merchant = db.get_or_none(
        merchants.DUE_LOOK_AHEAD,
        now=now_ms,
        until=now_ms + merchants.LOOK_AHEAD_EVERY_MS,
    )
    if merchant is None:
        return
    try:
        used = used_ahead(explorers, merchant, network)
    except (ExplorerError, MemoryError) as error:
        _note_failure(db, merchant, error, now)
        return
    note_used_ahead(db, merchant, used, now)
    if used:
        log.warning(
            "somebody else uses the account of merchant %s: number %d is used, and the next"
            " one here is %d",
            merchant.name,
            used[-1],
            merchant.next_index,
        )


def _note_failure(
    db: Database,
    merchant: Merchant,
    error: Exception,
    now: datetime,
) -> None:
    """Logs that the look-up has failed, and stores when it is due again."""
    reason = str(error) or type(error).__name__
    log.warning("the next addresses could not be asked about: %s", reason)
    due_ms = to_ms(now + AGAIN_AFTER_FAILURE)
    db.run(merchants.PUT_OFF_LOOK_AHEAD, id=merchant.id, look_ahead_ms=due_ms)
