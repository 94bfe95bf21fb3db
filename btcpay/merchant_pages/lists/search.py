"""A search: by what names a row, at once; else in texts and amounts, a piece at a time."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from btcpay.merchant_pages.lists.listing import MORE, SIZE, Listing, Named
from btcpay.values.currencies import CODES
from btcpay.values.ids import is_id
from btcpay.values.money import SATS_PER_BTC
from storage.database import Database, Values
from storage.queries.blocks import given
from storage.queries.lists import merchant_lists
from storage.queries.lists.keyset import FIRST
from storage.statement import Typed

PIECE = 1_000  # rows whose texts one request goes through: some milliseconds
MOST_CHARACTERS = 200  # of what is typed; the longest that names something has 90
END = "\x7f"  # behind every character of an id or an address

# From so many characters on a beginning is found: fewer would be shared by too many of a million.
_ID = re.compile(r"inv_[0-9A-Za-z]{4,24}")
_TXID = re.compile(r"\A[0-9a-f]{8,64}\Z|(?<![0-9a-z])[0-9a-f]{64}(?![0-9a-z])", re.I)
_SEGWIT = re.compile(r"(?:bitcoin:)?((?:bc|tb|bcrt)1[0-9a-z]{5,})", re.I)
_BASE58 = re.compile(r"(?:bitcoin:)?([123mn][1-9A-HJ-NP-Za-km-z]{7,})")
_AMOUNT = re.compile(r"[^\w.,]*(\d{1,16})(?:[.,](\d{1,8}))?\s*(sats?|[a-z]{3}|[$€£¥])?", re.I)

_UNITS = CODES | {"", "BTC", "SAT", "SATS", *"$€£¥"}
Names = Mapping[str, Typed[Named]]  # the queries by which what names a row finds it


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
    texts: Typed[merchant_lists.Texts],
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
        return db.rows(names["chosen"], **listing.values | {"texts": given(db, [typed])})
    limits: Values = {"merchant_id": listing.values["merchant_id"], "limit": MORE}
    name, begin = _beginning(typed)
    if name and (rows := db.rows(names[name], **limits | {"begin": begin, "end": begin + END})):
        return rows
    if not typed.isprintable():  # no reference is, and a server takes no null in a text
        return []
    return db.rows(names["reference"], **limits | {"begin": typed})


def _beginning(typed: str) -> tuple[str, str]:
    """The kind of name that this may begin ("id", "address", "txid", ""), and the beginning.

    It is found in what people copy too: a link to a page, a request to pay.
    Of one in ten thousand old addresses the first eight characters could be a transaction's too.
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
    texts: Typed[merchant_lists.Texts],
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
    rows = db.rows(whole, **listing.values | {"texts": given(db, ids)}) if ids else []
    if last is None or last is piece[-1]:
        return Found(rows)
    return Found(rows, until_at=last.created_at, further=last.id)


def is_found(row: merchant_lists.Texts, typed: str) -> bool:
    """True where the row has all the typed words, or the typed amount."""
    texts = (row.description, row.reference, row.customer_email)
    text = "\n".join(filter(None, texts)).casefold()
    return all(word in text for word in typed.casefold().split()) or _is_of(typed, row)


def _is_of(typed: str, row: merchant_lists.Texts) -> bool:
    """A number can mean the value of a row, or satoshis as such or as bitcoin."""
    found = _AMOUNT.fullmatch(typed)
    if not found or (found[3] or "").upper() not in _UNITS:
        return False
    number = Decimal(f"{found[1]}.{found[2] or 0}")
    is_value = row.value is not None and Decimal(row.value) == number
    return is_value or row.amount_sats in (number, number * SATS_PER_BTC)
