"""Examines the stored rows: totals, time, failed work, attention and gap limits."""

import shlex
from collections.abc import Iterator

from btcpay.chain.belief import noted_doubt
from btcpay.health.doctor.shop import Shop
from btcpay.merchants.merchants import MARGIN, gap_of_merchant
from btcpay.settlement.attention import REASONS
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from btcpay.values.times import SET_CLOCK, iso_ms
from storage.database import Database, Values
from storage.models import Merchant
from storage.queries import attentions, merchants, part_work
from storage.queries.totals import balances

MOST_WORK = 20  # maximum number of findings about failed work


def totals(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a finding for each merchant: red if the balance is not the sum of the outputs."""
    for merchant in db.rows(merchants.ALL):
        name = f"totals of {merchant.name}"
        values: Values = {"merchant_id": merchant.id}
        # One snapshot, since a check may write between the two queries.
        with db.snapshot():
            balance = db.get_or_none(balances.OF_MERCHANT, **values)
            sums = db.get(balances.RECOMPUTED, **values)
        if balance and balance == sums:
            sentence = f"{balance.confirmed_sats} satoshis confirmed, {balance.total_sats} in all"
            yield Finding(name, GREEN, sentence)
        else:
            yield Finding(
                name,
                RED,
                f"the balance says {balance}, but its outputs add up to {sums}",
                "the outputs are right: stop what else writes to the database, and"
                " restore a backup or correct the row of `balance`",
            )


def merchant_count(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a finding about the number of merchants.

    It is yellow if there are none: the settings may name the wrong database.
    """
    count = len(db.rows(merchants.ALL))
    remedy = (
        "check BLOCKTILL_DATABASE_URL, or add a merchant by `blocktill merchant add`"
    )
    if count:
        yield Finding("merchants", GREEN, f"{count} in this database")
    else:
        yield Finding("merchants", YELLOW, "there is none in this database", remedy)


def time(_shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a finding that is red while `blocktill check` doubts this machine's clock.

    In that time the check does nothing that cannot be undone, such as erasing data.
    """
    reason = noted_doubt(db)
    if not reason:
        yield Finding("time", GREEN, "the clock is near what the last checks saw")
        return
    remedy = (
        f"if the clock is wrong, {SET_CLOCK}; after an outage it is believed within an hour, or"
        " at once by `blocktill check --clock-is-right`"
    )
    sentence = f"no bill is renewed and nothing is erased: {reason}"
    yield Finding("time", RED, sentence, remedy)


def work(_shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a red finding for each task that has failed and will be tried again.

    A task is the work of a part (an optional plug-in) on a block, or the search of a
    block for payments. Yields at most MOST_WORK findings; nothing if no task has failed.
    """
    for row in db.rows(part_work.FAILED, limit=MOST_WORK):
        task = part_work.describe_work(row.kind, row.height, row.invoice_id)
        consequence = "payments are found"
        if row.part == part_work.CORE:
            consequence = "its payments are not found until then"
        sentence = (
            f"{task}: {row.reason}; tried {row.failures} times, and again at"
            f" {iso_ms(row.next_ms)}; {consequence}"
        )
        remedy = "see the check's log; if memory was short, give the check more"
        yield Finding(f"work of {row.part}", RED, sentence, remedy)


def attention(shop: Shop, db: Database) -> Iterator[Finding]:
    counts = dict(db.rows(attentions.BY_REASON))
    if not counts:
        yield Finding("attention", GREEN, "no invoice needs attention")
        return
    phrases = [
        f"{counts[reason]} {phrase}"
        for reason, phrase in REASONS.items()
        if reason in counts
    ]
    yield Finding(
        "attention",
        YELLOW,
        f"invoices that need attention: {', '.join(phrases)}",
        "`blocktill invoice list --attention` lists them, and says what to do",
    )


def gaps(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a finding for each merchant: yellow if the wallet's gap limit is nearly used.

    A wallet searches for payments until it has found a number of unused addresses in a
    row. This number is its gap limit. The wallet does not show payments to later
    addresses.
    """
    for merchant in db.rows(merchants.ALL):
        yield _gap(db, merchant)


def _gap(db: Database, merchant: Merchant) -> Finding:
    name = f"gap of {merchant.name}"
    gap = gap_of_merchant(db, merchant)
    last_paid = "none is paid"
    if gap.highest_paid is not None:
        last_paid = f"the last paid is {gap.highest_paid}"
    sentence = (
        f"the next address is {merchant.next_index}, {last_paid}: the wallet needs a gap limit of"
        f" {gap.limit}, and is taken to have {merchant.wallet_gap_limit}"
    )
    if gap.is_well_within(merchant.wallet_gap_limit):
        return Finding(name, GREEN, sentence)
    advised_limit = str(gap.limit + MARGIN)
    command = shlex.join(["blocktill", "wallet", "gap", merchant.name, advised_limit])
    remedy = (
        f"set the wallet's gap limit to {advised_limit}, or use `blocktill wallet export`"
        f" (docs/operators/backup.md); then note it: `{command}`"
    )
    return Finding(name, YELLOW, sentence, remedy)
