"""Invoices: their amounts, status and expiry, and what has been paid to them."""

from datetime import timedelta

from peewee import Case, fn

from btcpay.values.statuses import InvoiceStatus
from storage.models import Attention, Block, Fact, Invoice, Output
from storage.queries.meta import Key
from storage.statement import (
    all_columns,
    blank,
    eq,
    param,
    params,
    rows_as,
)

_NEWEST = (Invoice.created_ms.desc(), Invoice.seq.desc())
_OWN = eq(Invoice.merchant_id)

BY_ID = Invoice.select(*Invoice.PUBLIC).where(eq(Invoice.id), _OWN)
# Events and mails also use the reference, and the name and note that a payment link asks the payer
# for.
ANY_BY_ID = Invoice.select(
    *Invoice.PUBLIC,
    Invoice.reference,
    Invoice.customer_name,
    Invoice.customer_note,
).where(eq(Invoice.id))
LIST = (
    Invoice.select(*Invoice.PUBLIC).where(_OWN).order_by(*_NEWEST).limit(param("limit"))
)
LIST_BY_STATUS = LIST.where(eq(Invoice.status))

# Open, or finished so recently that a payment may still come. The statuses are listed so that the
# index on both columns is used.
MAY_BE_PAID = (Invoice.status == InvoiceStatus.OPEN) | (
    Invoice.status.in_(
        (InvoiceStatus.PAID, InvoiceStatus.EXPIRED, InvoiceStatus.CANCELED)
    )
    & (Invoice.finished_ms > param("finished_after"))
)
# how long after its end an invoice is still watched for payments
LATELY = timedelta(hours=168)

# All columns, for the check, the pages and the command line.
WHOLE = Invoice.select().where(eq(Invoice.id))

# The sums of what has come to an invoice, and the values of a new one.
_RECEIVED_SUMS = (
    *(Invoice.received_sats, Invoice.unconfirmed_sats),
    *(Invoice.unapplied_sats, Invoice.coming_unapplied_sats),
)
NEW = blank(
    Invoice,
    failures=0,
    received_sats=0,
    unconfirmed_sats=0,
    unapplied_sats=0,
    coming_unapplied_sats=0,
)
_TIP = Block.select(fn.MAX(Block.height))
ADD = Invoice.insert(all_columns(Invoice) | {Invoice.above_height: _TIP})

# The height of the best chain, and the time up to which it was read; NULL before the first block.
CHAIN = (
    _TIP.alias("tip_height"),
    Fact.select(Fact.value).where(Fact.name == Key.READ_MS.value).alias("read_ms"),
)
_ALIVE = Output.alias()
_GONE = Output.alias()
# The time when the last output vanished; NULL if a later output, such as a replacement, exists.
_GONE_AT = _GONE.select(fn.MAX(_GONE.vanished_ms)).where(
    _GONE.invoice_id == Invoice.id,
    _GONE.vanished_ms.is_null(False),
    _GONE.vanished_ms
    > fn.COALESCE(
        _ALIVE.select(fn.MAX(_ALIVE.first_seen_ms)).where(
            _ALIVE.invoice_id == Invoice.id, _ALIVE.vanished_ms.is_null()
        ),
        0,
    ),
)


class InvoiceWith(Invoice, Attention):
    """An invoice with columns of joined tables. A row has only what its query selects."""

    tip_height: int | None
    read_ms: str | None
    gone_ms: int | None
    merchant: str
    attention: str | None
    attention_since_ms: int | None


# An invoice with all columns that its displayed state depends on.
SEEN = rows_as(InvoiceWith, WHOLE.select_extend(*CHAIN, _GONE_AT.alias("gone_ms")))

# Stores the customer's mail address, if the invoice is paid and has none yet.
GIVE_ADDRESS = Invoice.update({Invoice.customer_email: param("customer_email")}).where(
    eq(Invoice.id),
    Invoice.status == InvoiceStatus.PAID,
    Invoice.customer_email.is_null(),
)
_EVER_CAME = Output.select(Output.txid).where(Output.invoice_id == Invoice.id)
_CAME = _EVER_CAME.where(Output.vanished_ms.is_null())
# All outputs to the address, confirmed or not, in time or late. For display, not for settlement.
_SUM_SATS = fn.SUM(Output.amount_sats).cast("BIGINT")
CAME_SATS = Output.select(fn.COALESCE(_SUM_SATS, 0)).where(
    Output.invoice_id == Invoice.id,
    Output.vanished_ms.is_null(),
)
_LAST_LOOK = Case(
    None,
    [(Invoice.asked_ms > Invoice.created_ms, Invoice.asked_ms)],
    Invoice.created_ms,
)
# A vanished output does not count as a payment. Otherwise somebody could pass any limit on unpaid
# invoices by replacing each payment.
_UNPAID = (Invoice.status == InvoiceStatus.OPEN) & ~fn.EXISTS(_CAME)


# An invoice that a link, a bill or the till may show again to the same browser: open, not expired,
# and without any output yet. After an output, even a vanished one, the next visitor may be another
# person.
_UNTOUCHED = Invoice.select(Invoice.id, *Invoice.AMOUNT_DUE, *Invoice.PERSONAL).where(
    Invoice.status == InvoiceStatus.OPEN,
    Invoice.expires_ms > param("now"),
    ~fn.EXISTS(_EVER_CAME),
)
UNTOUCHED_OF_MERCHANT = _UNTOUCHED.where(eq(Invoice.id), _OWN)
# The invoice with this id that was made for the link or bill `through`. UNTOUCHED finds it if no
# output has come, PAID_TO if one has.
_OF_PAGE = (Invoice.payment_link_id == param("through")) | (
    Invoice.bill_id == param("through")
)
UNTOUCHED = _UNTOUCHED.where(eq(Invoice.id), _OF_PAGE)
PAID_TO = Invoice.select(Invoice.id).where(eq(Invoice.id), _OF_PAGE, fn.EXISTS(_CAME))
# The number of unpaid invoices that a payer has viewed since `since`, with the earliest last view
# and the earliest expiry.
WAITED_FOR = rows_as(
    tuple[int, int | None, int | None],
    Invoice.select(
        fn.COUNT(Invoice.seq), fn.MIN(_LAST_LOOK), fn.MIN(Invoice.expires_ms)
    ).where(_UNPAID, Invoice.expires_ms > param("now"), param("since") < _LAST_LOOK),
)
WAITED_FOR_OF_LINK = WAITED_FOR.where(Invoice.payment_link_id == param("through"))

# Changes the status only if it is still `from_status`.
_END = (Invoice.tx_hash, Invoice.paid_ms, Invoice.settled_reason, Invoice.finished_ms)
_RECEIPT = (Invoice.receipt_number, Invoice.tax_percent)
FINISH = Invoice.update(params(Invoice.status, *_END, *_RECEIPT)).where(
    eq(Invoice.id), Invoice.status == param("from_status")
)

# Stores when outputs first covered the whole amount.
COVER = Invoice.update({Invoice.covered_ms: param("at")}).where(
    eq(Invoice.id), Invoice.covered_ms.is_null()
)

# Stores the received sums. Run in each transaction that changes the status or an output.
KEEP = Invoice.update(params(*_RECEIVED_SUMS, Invoice.newest_height)).where(
    eq(Invoice.id)
)

# For a restart from another first block: invoices with a proven payment keep a height.
KEEP_PROVEN = Invoice.update({Invoice.newest_height: param("height")}).where(
    Invoice.newest_height.is_null(False)
)

# After a reorganisation: blocks that replace those above this height count as new.
LOWER = Invoice.update({Invoice.above_height: param("height")}).where(
    Invoice.above_height > param("height")
)
# For a restart from another first block: all blocks are read again. A block that pays an open
# invoice may then be older than the invoice. Finished invoices do not change.
NO_TIP = -1
FORGET_TIP = Invoice.update(
    {Invoice.above_height: Case(None, [(Invoice.finished_ms.is_null(), None)], NO_TIP)}
).where(Invoice.above_height.is_null(False))

# Reopens a paid invoice whose payment a reorganisation has undone. Its receipt number stays.
REOPEN = Invoice.update(
    {Invoice.status: InvoiceStatus.OPEN} | dict.fromkeys(_END)
).where(eq(Invoice.id), Invoice.status == InvoiceStatus.PAID)

# ASKED stores that a payer views the invoice. `asked_since` starts again after AWAY_MS without a
# view, or if the stored time is in the future because a clock was fast.
AWAY_MS = 6 * 3_600_000
CLOCKS_MS = 60_000
_IS_NEW = (
    Invoice.asked_since.is_null()
    | (Invoice.asked_ms + AWAY_MS <= param("at"))
    | (Invoice.asked_ms - CLOCKS_MS > param("at"))
)
ASKED = Invoice.update(
    {
        Invoice.asked_ms: param("at"),
        Invoice.asked_since: Case(None, [(_IS_NEW, param("at"))], Invoice.asked_since),
    }
).where(eq(Invoice.id))

# Personal data of customers in invoices that finished before `before`. The index has only rows with
# such data.
_PERSONAL = (
    Invoice.customer_email.is_null(False)
    | Invoice.metadata.is_null(False)
    | Invoice.customer_name.is_null(False)
    | Invoice.customer_note.is_null(False)
) & (Invoice.finished_ms < param("before"))
WITH_PERSONAL = (
    Invoice.select(Invoice.id)
    .where(_PERSONAL, Invoice.finished_ms.is_null(False))
    .order_by(Invoice.finished_ms)
    .limit(param("limit"))
)
ERASE_PERSONAL = Invoice.update(
    dict.fromkeys((*Invoice.PERSONAL, Invoice.metadata))
).where(eq(Invoice.id), _PERSONAL)
