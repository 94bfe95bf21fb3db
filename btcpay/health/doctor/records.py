"""The rows: totals compared with their sums, the last check, the gap limit."""

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta

from btcpay.chain.belief import noted_doubt
from btcpay.health.doctor.shop import Shop
from btcpay.health.state import State, state_in
from btcpay.merchants.merchants import MARGIN, gap_of_merchant
from btcpay.settlement.attention import REASONS
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from btcpay.values.times import SET_CLOCK, iso, iso_ms
from storage.database import Database, Values
from storage.queries import attentions, merchants, meta, part_work
from storage.queries.totals import balances

MOST_WORK = 20  # lines of the doctor


def totals(shop: Shop, db: Database) -> Iterator[Finding]:
    """Each merchant's balance is kept as a total; it must equal the sum of the rows."""
    for merchant in db.rows(merchants.ALL):
        of: Values = {"merchant_id": merchant.id}
        with db.snapshot():  # between the two queries a check may settle something
            kept = db.row(balances.OF_MERCHANT, **of)
            summed = db.only(balances.RECOMPUTED, **of)
        name = f"totals of {merchant.name}"
        if kept and kept == summed:
            sentence = (
                f"{kept.confirmed_sats} satoshis confirmed, {kept.total_sats} in all"
            )
            yield Finding(name, GREEN, sentence)
        else:
            yield Finding(
                name,
                RED,
                f"the balance says {kept}, but its outputs add up to {summed}",
                "the outputs are right: stop what else writes to the database, and"
                " restore a backup or correct the row of `balance`",
            )


def merchant_count(shop: Shop, db: Database) -> Iterator[Finding]:
    """A database without a merchant is mostly the wrong file."""
    count = len(db.rows(merchants.ALL))
    remedy = (
        "check BLOCKTILL_DATABASE_URL, or add a merchant by `blocktill merchant add`"
    )
    if count:
        yield Finding("merchants", GREEN, f"{count} in this database")
    else:
        yield Finding("merchants", YELLOW, "there is none in this database", remedy)


def state(shop: Shop, db: Database) -> Iterator[Finding]:
    now = shop.now()
    found = state_in(db, shop.settings, now)
    yield _found(found, now)
    yield _previews(found)
    yield _chain(found, now, meta.get(db, meta.Key.NOT_BEGUN) or "")


def _found(found: State, now: datetime) -> Finding:
    often = (
        "`blocktill run` checks by itself,"
        " else run `blocktill check` every minute; read its log"
    )
    remedy = "" if found.payments == GREEN else often
    sentence = "no check has been complete yet"
    if found.checked_at:
        sentence = f"the last complete check was at {iso(found.checked_at)}"
        if found.payments != GREEN:
            sentence += (
                f", {(now - found.checked_at) // timedelta(minutes=1)} minutes ago"
            )
    return Finding("check", found.payments, sentence, remedy)


def _previews(found: State) -> Finding:
    if found.previews == GREEN:
        return Finding("previews", GREEN, "every open page was looked up in time")
    pages = (
        "1 open page"
        if found.previews_late == 1
        else f"{found.previews_late} open pages"
    )
    sentence = f"{pages} will show a payment late: no mempool was asked in time; none is missed"
    remedy = (
        "read the check's warnings; without one raise BLOCKTILL_EXPLORER_CALLS_PER_HOUR, or use"
        " your own explorer"
    )
    return Finding("previews", found.previews, sentence, remedy)


def _chain(found: State, now: datetime, not_begun: str) -> Finding:
    known = found.progress
    if known is None:
        if not_begun:
            sentence = f"reading cannot begin, and no payment is found: {not_begun}"
            remedy = "repair what is red below, or name other explorers in BLOCKTILL_EXPLORERS"
            return Finding("chain", RED, sentence, remedy)
        return Finding(
            "chain", GREEN, "no block is known: the next check begins to read"
        )
    sentence = f"at block {known.height} of {iso(known.mined_at)}"
    if found.chain == RED:
        minutes = (now - known.mined_at) // timedelta(minutes=1)
        sentence += f", {minutes} minutes ago: nothing expires meanwhile"
        return Finding(
            "chain", RED, sentence, "see whether the explorers show a newer block"
        )
    if found.chain == YELLOW:
        blocks = "1 block is" if known.behind == 1 else f"{known.behind} blocks are"
        remedy = (
            "run `blocktill check`;"
            " BLOCKTILL_EXPLORER_CALLS_PER_HOUR says how fast it may read"
        )
        return Finding(
            "chain", YELLOW, f"{sentence}, {blocks} still to be read", remedy
        )
    return Finding("chain", GREEN, f"{sentence}, every block is read")


def time(_shop: Shop, db: Database) -> Iterator[Finding]:
    """What a check cannot take back waits until its clock is believed."""
    if why := noted_doubt(db):
        sentence = f"no bill is renewed and nothing is erased: {why}"
        remedy = (
            f"if the clock is wrong, {SET_CLOCK}; after an outage it is believed within an hour, or"
            " at once by `blocktill check --clock-is-right`"
        )
        yield Finding("time", RED, sentence, remedy)
    else:
        yield Finding("time", GREEN, "the clock is near what the last checks saw")


def work(_shop: Shop, db: Database) -> Iterator[Finding]:
    """What could not be done yet, and is tried again by itself."""
    for row in db.rows(part_work.FAILED, limit=MOST_WORK):
        place = part_work.place_of(row.kind, row.height, row.invoice_id)
        payments = "payments are found"
        if row.part == part_work.CORE:
            payments = "its payments are not found until then"
        sentence = (
            f"{place}: {row.reason}; tried {row.failures} times, and again at"
            f" {iso_ms(row.next_at)}; {payments}"
        )
        remedy = "see the check's log; if memory was short, give the check more"
        yield Finding(f"work of {row.part}", RED, sentence, remedy)


def attention(shop: Shop, db: Database) -> Iterator[Finding]:
    counts = dict(db.rows(attentions.BY_REASON))
    if not counts:
        yield Finding("attention", GREEN, "no invoice needs attention")
        return
    sentence = ", ".join(
        f"{counts[reason]} {REASONS[reason]}" for reason in REASONS if reason in counts
    )
    yield Finding(
        "attention",
        YELLOW,
        f"invoices that need attention: {sentence}",
        "`blocktill invoice list --attention` lists them, and says what to do",
    )


def gaps(shop: Shop, db: Database) -> Iterator[Finding]:
    """Warns early: a wallet does not show money beyond its gap limit."""
    for merchant in db.rows(merchants.ALL):
        gap = gap_of_merchant(db, merchant)
        last = gap.highest_paid
        advised = str(gap.limit + MARGIN)
        paid = "none is paid" if last is None else f"the last paid is {last}"
        sentence = (
            f"the next address is {merchant.next_index}, {paid}: the wallet needs a gap limit of"
            f" {gap.limit}, and is taken to have {merchant.wallet_gap_limit}"
        )
        say = shlex.join(["blocktill", "wallet", "gap", merchant.name, advised])
        remedy = (
            f"set the wallet's gap limit to {advised}, or use `blocktill wallet export`"
            f" (docs/operators/backup.md); then note it: `{say}`"
        )
        name = f"gap of {merchant.name}"
        well = gap.is_well_within(merchant.wallet_gap_limit)
        yield (
            Finding(name, GREEN, sentence)
            if well
            else Finding(name, YELLOW, sentence, remedy)
        )
