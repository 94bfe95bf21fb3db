"""The merchant's invoices and payments, page by page, and what a search finds in them.

A row's name is found at once; texts and amounts are searched a piece at a time.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from flask import Response

from btcpay.languages.formats import symbol
from btcpay.merchant_pages import queries
from btcpay.merchant_pages.lists.listing import MORE, SIZE, Listing, Named
from btcpay.merchant_pages.visit import Visit
from btcpay.values.ids import is_id
from btcpay.values.money import SATS_PER_BTC, Money, asked_of
from btcpay.values.times import number_of, start_of
from schemas.requests import STATUSES
from storage.database import Database
from storage.queries.blocks import given
from storage.queries.lists.keyset import FIRST
from storage.statement import Typed
from storage.values import Values

PIECE = 1_000  # rows whose texts one request goes through: some milliseconds
MOST_CHARACTERS = 200  # of the typed text; the longest name of a row has 90
END = "\x7f"  # sorts after every character of an id or an address

# The shortest beginning that is found; too many of a million rows would share a shorter one.
_ID = re.compile(r"inv_[0-9A-Za-z]{4,24}")
_TXID = re.compile(r"\A[0-9a-f]{8,64}\Z|(?<![0-9a-z])[0-9a-f]{64}(?![0-9a-z])", re.I)
_SEGWIT = re.compile(r"(?:bitcoin:)?((?:bc|tb|bcrt)1[0-9a-z]{5,})", re.I)
_BASE58 = re.compile(r"(?:bitcoin:)?([123mn][1-9A-HJ-NP-Za-km-z]{7,})")
_UNIT = r"(sats?|[a-z]{3}|[^\w\s.,])?"
_AMOUNT = re.compile(rf"{_UNIT}\s*(\d{{1,16}})(?:[.,٫](\d{{1,8}}))?\s*{_UNIT}", re.I)
_BITCOIN = {"", "BTC", "₿", "SAT", "SATS"}
Names = Mapping[str, Typed[Named]]  # the queries that find a row by its name
LOOSE = "loose"


class Found(NamedTuple):
    """The answer to a search. `rows`: at most a page, the newest first.

    A search in texts has gone through rows down to the one made `until_at`, and `further` is the
    id behind which it goes on; both None when it came to the end. `named`: found by its name.
    """

    rows: list[Named]
    named: bool = False
    until_at: int | None = None
    further: str | None = None


def search(
    db: Database,
    listing: Listing,
    names: Names,
    texts: Typed[queries.Texts],
    typed: str,
    behind: str,
) -> Found:
    """Rows found by name; without any, or behind an id, rows of the next piece of texts."""
    rows = [] if behind else _by_name(db, listing, names, typed)
    if not rows:
        return _in_texts(db, listing, names["chosen"], texts, typed, behind)
    if len(rows) <= SIZE:
        return Found(rows, named=True)
    last = rows[SIZE - 1]  # texts are searched behind it, references among them
    return Found(rows[:SIZE], until_at=last.created_at, further=last.id)


def _by_name(db: Database, listing: Listing, names: Names, typed: str) -> list[Named]:
    """Rows that an id, the beginning of one, of an address or a txid, or a reference names."""
    if is_id(listing.prefix, typed):
        return db.rows(names["chosen"], **listing.values | {"texts": given([typed])})
    limits: Values = {"merchant_id": listing.values["merchant_id"], "limit": MORE}
    name, begin = _beginning(typed)
    if name and (rows := db.rows(names[name], **limits | {"begin": begin, "end": begin + END})):
        return rows
    if not typed.isprintable():  # no reference is, and a server takes no null in a text
        return []
    return db.rows(names["reference"], **limits | {"begin": typed})


def _beginning(typed: str) -> tuple[str, str]:
    """The kind of name that this may begin ("id", "address", "txid", ""), and the beginning.

    It is found within copied texts, too, such as a page's link or a payment request. The first
    eight characters of one in ten thousand old addresses could also be a transaction's.
    """
    if found := _ID.search(typed):
        return "id", found[0]
    if found := _SEGWIT.match(typed):
        return "address", found[1].lower()
    if found := _TXID.search(typed):
        return "txid", found[0].lower()
    if found := _BASE58.match(typed):
        return "address", found[1]
    return "", ""


def _in_texts(
    db: Database,
    listing: Listing,
    whole: Typed[Named],
    texts: Typed[queries.Texts],
    typed: str,
    behind: str,
) -> Found:
    """The next rows with these words or this amount, in one piece of the list behind an id.

    Three statements: the place, the piece, the rows that were found in it.
    """
    place = listing.place_of(db, behind) or FIRST
    piece = db.rows(texts, **listing.behind(place, PIECE + 1))
    ids: list[str] = []
    last = None
    for row in piece[:PIECE]:
        if len(ids) == SIZE:
            break
        last = row
        if is_found(row, typed):
            ids.append(row.id)
    rows = db.rows(whole, **listing.values | {"texts": given(ids)}) if ids else []
    if last is None or last is piece[-1]:
        return Found(rows)
    return Found(rows, until_at=last.created_at, further=last.id)


def is_found(row: queries.Texts, typed: str) -> bool:
    """True where the row has all the typed words, or the typed amount."""
    payer = (row.customer_email, row.customer_name, row.customer_note)
    texts = (row.description, row.reference, *payer)
    text = "\n".join(filter(None, texts)).casefold()
    return all(word in text for word in typed.casefold().split()) or _is_of(typed, row)


def _is_of(typed: str, row: queries.Texts) -> bool:
    """A number can mean a row's value, what its invoice asked for, its satoshis, or its bitcoin.

    With a unit it means that one: `€25` no other currency.
    """
    found = _AMOUNT.fullmatch(typed)
    if not found:
        return False
    number, unit = Decimal(f"{found[2]}.{found[3] or 0}"), (found[1] or found[4] or "").upper()
    values = [asked_of(row)] + ([Money(Decimal(row.value), row.value_in)] if row.value else [])
    if any(number == worth.amount and _is_unit(unit, worth.currency) for worth in values):
        return True
    return unit in _BITCOIN and row.amount_sats in (number, number * SATS_PER_BTC)


def _is_unit(typed: str, currency: str) -> bool:
    """True for the currency's code, for a sign of it ($ is that of many), and for none."""
    return typed in ("", currency) or (len(typed) == 1 and typed in symbol(currency, "en"))


def loose_kind(status: str, expires_at: int | None, came_at: int) -> str:
    """The reason why a payment of an invoice with that status has settled nothing.

    `came_at`: when it was first seen, or the time of its block if that is earlier.
    """
    if status == "expired":
        return "late" if expires_at is not None and came_at >= expires_at else "part"
    return {"open": "part", "canceled": "after_cancellation", "paid": "on_top"}[status]


def show_invoices(visit: Visit) -> Response:
    """A page of the list or of a search; if only one row has the name, it is opened at once."""
    own: Values = {"merchant_id": visit.merchant_id}
    older, texts = queries.INVOICES, queries.INVOICE_TEXTS
    status = visit.query.get("status", "")
    if status in STATUSES:
        own["status"] = status
        older, texts = queries.INVOICES_BY_STATUS, queries.INVOICE_TEXTS_BY_STATUS
    listing = Listing("inv", older, queries.INVOICE_PLACE, own)
    page = _page(visit, listing, queries.FOUND_INVOICES, texts)
    found = page["found"]
    if found and found.named and len(found.rows) == 1:
        return visit.to(f"/invoices/{found.rows[0].id}")
    return visit.page("invoices.html", of_status=own.get("status", ""), **page)


def show_payments(visit: Visit) -> Response:
    """A page of all payments, of those that settle no invoice, or of a search."""
    older, texts = queries.PAYMENTS, queries.PAYMENT_TEXTS
    kind = LOOSE if visit.query.get("kind") == LOOSE else ""
    if kind:
        older, texts = queries.LOOSE_PAYMENTS, queries.LOOSE_PAYMENT_TEXTS
    own: Values = {"merchant_id": visit.merchant_id}
    listing = Listing("pay", older, queries.PAYMENT_PLACE, own)
    page = _page(visit, listing, queries.FOUND_PAYMENTS, texts)
    return visit.page("payments.html", kind=kind, loose_kind=loose_kind, **page)


def _page(
    visit: Visit, listing: Listing, names: Names, texts: Typed[queries.Texts]
) -> dict[str, Any]:
    """The typed text with the rows that it finds, or a page of the list without one."""
    db, typed = visit.service.db, visit.query.get("q", "").strip()[:MOST_CHARACTERS]
    if not typed:
        day = visit.day("day")
        before_ms = start_of(number_of(day) + 1, visit.zone) if day else None
        return {"q": typed, "found": None, "shown": listing.page(db, visit.query, before_ms)}
    behind = visit.query.get("older", "")
    found = search(db, listing, names, texts, typed, behind)
    return {"q": typed, "found": found, "shown": None}
