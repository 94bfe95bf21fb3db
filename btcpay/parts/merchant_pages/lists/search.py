"""Searches the merchant's invoices and payments, and returns the found rows page by page."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import cast

from btcpay.bitcoin.bitcoin_uri import strip_scheme, strip_unseen
from btcpay.languages.formats import symbol
from btcpay.parts.merchant_pages import queries
from btcpay.values.money import SATS_PER_BTC, Money, amount_due
from btcpay.values.texts import is_refused
from btcpay.web.pages.listing import MORE, SIZE, Listing, ListPage
from storage.database import Database
from storage.queries.lists.keyset import FIRST
from storage.statement import Typed
from storage.values import Values

PIECE = 1_000  # rows whose texts one request searches, in a few hundredths of a second
END = "\x7f"  # sorts after every character of an id or an address

# Patterns for the beginnings of values that can be searched. Shorter beginnings would match too
# many of a million rows. Patterns that ignore case are for values stored in lower case.
_BEGINNINGS = (
    ("id", re.compile(r"(inv_[0-9A-Za-z]{4,24})")),
    ("address", re.compile(r"\A((?:bc|tb|bcrt)1[0-9a-z]{5,})", re.I)),
    (
        "txid",
        re.compile(r"(\A[0-9a-f]{8,64}\Z|(?<![0-9a-z])[0-9a-f]{64}(?![0-9a-z]))", re.I),
    ),
    ("address", re.compile(r"\A([123mn][1-9A-HJ-NP-Za-km-z]{7,})")),
)
# An amount such as "25", "€25.50" or "3000 sats". `before` and `after` are units.
_UNIT = r"sats?|[a-z]{3}|[^\w\s.,]"
_NUMBER = r"(?P<whole>\d{1,16})(?:[.,٫](?P<fraction>\d{1,8}))?"
_AMOUNT = re.compile(
    rf"(?P<before>{_UNIT})?\s*{_NUMBER}\s*(?P<after>{_UNIT})?", re.IGNORECASE
)
_BITCOIN = {"", "BTC", "₿", "SAT", "SATS"}
ListedRow = queries.ListedInvoice | queries.ListedPayment
# The queries that find rows, by "id", "address", "txid" and "reference".
QueryByName = Mapping[str, Typed[ListedRow]]


def search(
    db: Database,
    listing: Listing,
    query_by_name: QueryByName,
    query: str,
    after_id: str,
) -> ListPage:
    """Returns a page of the rows whose id, address, txid or reference is in `query`.

    If there are no such rows, returns a page of the rows that contain the words or the
    amount in `query`. `after_id` is the id of the row after which this page begins; ""
    for the first page. Only the first page can have rows of the first kind.
    """
    rows = []
    if not after_id:
        rows = _by_name(db, listing, query_by_name, query)
    if not rows:
        return _in_texts(db, listing, query, after_id)
    if len(rows) <= SIZE:
        return ListPage(rows, has_names=True)
    # The next page searches the texts of the rows after this one. They include the
    # references.
    last_shown = rows[SIZE - 1]
    return ListPage(rows[:SIZE], older=last_shown.id, until_ms=last_shown.created_ms)


def _by_name(
    db: Database, listing: Listing, query_by_name: QueryByName, query: str
) -> list[ListedRow]:
    """Returns the rows that match an id, an address, a txid or a reference.

    `query` may be the beginning of an id, an address or a txid, or a text that contains
    such a beginning, for example a page's URL or a payment URI. A reference must match
    as a whole.
    """
    values: Values = {"merchant_id": listing.values["merchant_id"], "limit": MORE}
    for name, pattern in _BEGINNINGS:
        begin = _beginning_in(query, name, pattern)
        if begin is None:
            continue
        bounds: Values = {"begin": begin, "end": begin + END}
        rows = db.rows(query_by_name[name], **values | bounds)
        if rows:
            return rows
    # No reference contains such a character, and PostgreSQL refuses U+0000 in a text.
    if any(map(is_refused, query)):
        return []
    return db.rows(query_by_name["reference"], **values | {"begin": query})


def _beginning_in(query: str, name: str, pattern: re.Pattern[str]) -> str | None:
    """Returns the beginning of a value that `query` contains, as the value is stored.

    `name` and `pattern` are an entry of _BEGINNINGS. Returns None if there is no match.
    """
    text = query
    if name == "address":
        text = strip_scheme(strip_unseen(query))
    match = pattern.search(text)
    if match is None:
        return None
    if pattern.flags & re.IGNORECASE:
        return match[1].lower()
    return match[1]


def _in_texts(db: Database, listing: Listing, query: str, after_id: str) -> ListPage:
    """Returns a page of the rows that contain the words or the amount in `query`.

    Searches only the PIECE rows that follow the row with the id `after_id`. If `after_id`
    is "", searches the first PIECE rows.
    """
    place = listing.position_of(db, after_id) or FIRST
    rows = cast(
        list[ListedRow],
        db.rows(listing.older, **listing.values_after(place, PIECE + 1)),
    )
    matches: list[ListedRow] = []
    last_searched = None
    for row in rows[:PIECE]:
        last_searched = row
        if is_match(row, query):
            matches.append(row)
        if len(matches) == SIZE:
            break
    if last_searched is None or last_searched is rows[-1]:  # no further rows
        return ListPage(matches)
    return ListPage(matches, older=last_searched.id, until_ms=last_searched.created_ms)


def is_match(row: ListedRow, query: str) -> bool:
    """True if the row's texts contain all words of `query`, or if `query` is its amount."""
    texts = (
        row.description,
        row.reference,
        row.customer_email,
        row.customer_name,
        row.customer_note,
    )
    text = "\n".join(filter(None, texts)).casefold()
    has_words = all(word in text for word in query.casefold().split())
    return has_words or _is_amount_of(row, query)


def _is_amount_of(row: ListedRow, query: str) -> bool:
    """True if `query` is one of the row's amounts, in its currency, satoshis or bitcoin.

    If `query` has a unit, it must be the unit of the amount: `€25` matches only amounts
    in euros.
    """
    match = _AMOUNT.fullmatch(query)
    if match is None:
        return False
    number = Decimal(f"{match['whole']}.{match['fraction'] or 0}")
    unit = (match["before"] or match["after"] or "").upper()
    amounts = [amount_due(row)]
    if row.value:
        amounts.append(Money(Decimal(row.value), row.value_in))
    for money in amounts:
        if number == money.amount and _is_unit(unit, money.currency):
            return True
    return unit in _BITCOIN and row.amount_sats in (number, number * SATS_PER_BTC)


def _is_unit(unit: str, currency: str) -> bool:
    """True if the unit is empty, or is the code or the symbol of the currency.

    Several currencies may share a symbol.
    """
    if unit in ("", currency):
        return True
    return len(unit) == 1 and unit in symbol(currency, "en")
