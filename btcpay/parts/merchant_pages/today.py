"""Queries for the page *Today*: the shop's row, and the pending payments."""

from typing import NamedTuple

from peewee import JOIN, Select, fn

from storage.models import Balance, Fact, Invoice, Merchant, MerchantMail, Output
from storage.queries import blocks, mail_servers
from storage.queries.meta import Key
from storage.queries.payments import OutputWith
from storage.queries.totals import gaps
from storage.statement import eq, param, rows_as


def _fact(key: Key) -> Select:
    """Returns a column with the number that the table `fact` stores under this key."""
    number = Fact.select(Fact.value.cast("BIGINT")).where(Fact.name == key.value)
    return number.alias(key.value)


class Shop(NamedTuple):
    """The values of the page *Today* that one row of the database has.

    - `next_index`, `used_before`, `used_ahead`, `wallet_gap_limit`: columns of the table
      `merchant`.
    - `last_paid`: the highest index of a paid address; None if none is paid.
    - `widest`: the widest step from one paid address to the next; None if none is paid.
    - `checked_ms`: when a check last looked at all watched invoices.
    - `previews_late`: the number of open pages for which the mempool was queried late.
    - `height`, `mined_ms`: the height and the time of the best block.
    - `behind`: the number of unread blocks.
    - `is_at_stake`: True if the unread blocks matter, since an invoice may be paid or a
      merchant has a balance.
    """

    next_index: int
    used_before: int
    used_ahead: int | None
    created_ms: int
    wallet_gap_limit: int
    mail_address: str | None
    confirmed_sats: int
    last_paid: int | None
    widest: int | None
    checked_ms: int | None
    previews_late: int | None
    backed_up_ms: int | None
    height: int | None
    mined_ms: int | None
    behind: int
    is_at_stake: bool
    has_mail_server: bool


SHOP = rows_as(
    Shop,
    Merchant.select(
        Merchant.next_index,
        Merchant.used_before,
        Merchant.used_ahead,
        Merchant.created_ms,
        Merchant.wallet_gap_limit,
        MerchantMail.address.alias("mail_address"),
        Balance.confirmed_sats,
        gaps.LAST_PAID.alias("last_paid"),
        gaps.WIDEST.alias("widest"),
        _fact(Key.CHECKED_MS),
        _fact(Key.PREVIEWS_LATE),
        _fact(Key.BACKED_UP_MS),
        *blocks.KNOWN,
        mail_servers.IS_IN_USE.alias("has_mail_server"),
    )
    .join(Balance, on=(Balance.merchant_id == Merchant.id))
    .join(MerchantMail, JOIN.LEFT_OUTER, on=(MerchantMail.merchant_id == Merchant.id))
    .join(blocks.BEST, JOIN.LEFT_OUTER, on=blocks.IS_BEST)
    .where(Merchant.id == param("merchant_id")),
)
# The outputs that do not count yet, since they lack confirmations, newest first. There is one
# row per invoice, with the outputs' sum and the time when the first of them was seen.
ON_ITS_WAY = rows_as(
    OutputWith,
    Output.select(
        Output.invoice_id,
        fn.SUM(Output.amount_sats).cast("BIGINT").alias("amount_sats"),
        fn.MIN(Output.first_seen_ms).alias("first_seen_ms"),
        Invoice.description,
        Invoice.reference,
        Invoice.gratuity,
        Invoice.currency,
        Invoice.price,
    )
    .join(Invoice, on=(Invoice.id == Output.invoice_id))
    .where(
        eq(Output.merchant_id),
        Output.payment_id.is_null(),
        Output.vanished_ms.is_null(),
        Output.spent_height.is_null(),
    )
    .group_by(Output.invoice_id, Invoice.seq)
    .order_by(fn.MAX(Output.first_seen_ms).desc(), Output.invoice_id)
    .limit(param("limit")),
)
