"""The rows: totals compared with their sums, the last check, the gap limit."""

import shlex
from collections.abc import Iterator
from datetime import timedelta

from btcpay.chain.progress import progress_of
from btcpay.health.doctor.finding import GREEN, RED, YELLOW, Finding, Opened
from btcpay.merchants.gap_limit import MARGIN, gap_of_merchant
from btcpay.settlement.attention import REASONS
from btcpay.values.times import iso
from storage.queries import attentions, balances, merchants, meta


def totals(opened: Opened) -> Iterator[Finding]:
    """Each merchant's balance is kept as a total; it must equal the sum of the rows."""
    db = opened.db
    for merchant in db.rows(merchants.ALL):
        of = {"merchant_id": merchant["id"]}
        with db.snapshot():  # between the two queries a check may settle something
            kept, summed = db.row(balances.OF_MERCHANT, **of), db.only(balances.RECOMPUTED, **of)
        name = f"totals of {merchant['name']}"
        if kept and kept == summed:
            told = f"{kept['confirmed_sats']} satoshis confirmed, {kept['total_sats']} in all"
            yield Finding(name, GREEN, told)
        else:
            yield Finding(
                name,
                RED,
                f"the balance says {kept}, its outputs sum up to {summed}",
                "the outputs are right: stop what writes to the database beside btcpay, and"
                " restore a backup or correct the row of `balance`",
            )


def merchant_count(opened: Opened) -> Iterator[Finding]:
    """A database without a merchant is mostly the wrong file."""
    count = len(opened.db.rows(merchants.ALL))
    remedy = "see that BTCPAY_DATABASE_URL names the right one; add one by `btcpay merchant add`"
    if count:
        yield Finding("merchants", GREEN, f"{count} in this database")
    else:
        yield Finding("merchants", YELLOW, "there is none in this database", remedy)


def last_check(opened: Opened) -> Iterator[Finding]:
    """Without a check nothing is ever paid."""
    checked_at = meta.time(opened.db, meta.Key.CHECKED_AT)
    remedy = "run `btcpay check` from cron every minute, and see what it says"
    if checked_at is None:
        yield Finding("check", YELLOW, "no check has been complete yet", remedy)
        return
    most = timedelta(minutes=opened.patient.settings.check_max_age_min)
    age = opened.patient.now() - checked_at
    told = f"the last complete check was at {iso(checked_at)}"
    if age > most:
        yield Finding("check", RED, f"{told}, {age // timedelta(minutes=1)} minutes ago", remedy)
    else:
        yield Finding("check", GREEN, told)


def chain(opened: Opened) -> Iterator[Finding]:
    """How far the chain is known and read: what is not read is not settled."""
    settings, now = opened.patient.settings, opened.patient.now()
    known = progress_of(opened.db, settings.blocks, now)
    if known is None:
        yield Finding("chain", GREEN, "no block is known: the first invoice begins it")
        return
    age, most = now - known.mined_at, settings.network.tip_max_age
    told = f"at block {known.height} of {iso(known.mined_at)}"
    if most is not None and age > most:
        told += f", {age // timedelta(minutes=1)} minutes ago: nothing expires meanwhile"
        yield Finding("chain", RED, told, "see what the explorers are up to")
    elif known.behind:
        blocks = "1 block is" if known.behind == 1 else f"{known.behind} blocks are"
        told += f", {blocks} still to be read"
        remedy = "let `btcpay check` run; BTCPAY_EXPLORER_CALLS_PER_HOUR says how fast it may read"
        yield Finding("chain", YELLOW, told, remedy)
    else:
        yield Finding("chain", GREEN, f"{told}, every block is read")


def attention(opened: Opened) -> Iterator[Finding]:
    """What the rules leave to a human."""
    counts = {row["reason"]: row["invoices"] for row in opened.db.rows(attentions.BY_REASON)}
    if not counts:
        yield Finding("attention", GREEN, "no invoice wants a human")
        return
    told = ", ".join(
        f"{counts[reason]} {REASONS[reason]}" for reason in REASONS if reason in counts
    )
    yield Finding(
        "attention",
        YELLOW,
        f"invoices that want a human: {told}",
        "`btcpay invoice list --attention` names them, and says what to do",
    )


def gaps(opened: Opened) -> Iterator[Finding]:
    """Warns early: a wallet does not show money beyond its gap limit."""
    for merchant in opened.db.rows(merchants.ALL):
        gap = gap_of_merchant(opened.db, merchant)
        paid = (
            "none is paid" if gap.highest_paid is None else f"the last paid is {gap.highest_paid}"
        )
        told = (
            f"the next address is {gap.next_index}, {paid}: the wallet needs a gap limit of"
            f" {gap.limit}, and is said to have {merchant['wallet_gap_limit']}"
        )
        say = shlex.join(["btcpay", "wallet", "gap", merchant["name"], str(gap.limit + MARGIN)])
        remedy = (
            f"set the wallet's gap limit to {gap.limit + MARGIN}, or use `btcpay wallet export`"
            f" (docs/backup.md); then say so: `{say}`"
        )
        name, well = f"gap of {merchant['name']}", gap.is_well_within(merchant["wallet_gap_limit"])
        yield Finding(name, GREEN, told) if well else Finding(name, YELLOW, told, remedy)
