"""Merchants: their names, account keys and preferences, and their wallets' gap limit.

The gap limit (BIP44) is the number of consecutive unused addresses after which a wallet
stops searching, usually 20. If more invoices in a row stay unpaid, the wallet does not
show the next payment.
"""

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.merchants.secret import holds_secret
from btcpay.values.errors import CommandError
from btcpay.values.texts import MAX_CHARACTERS, line_of
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.faults import IntegrityError
from storage.models import Brand, Merchant, MerchantMail
from storage.queries import merchants, receivers
from storage.queries.totals import balances, days, gaps
from storage.statement import as_dict, replace

# The merchant is warned when more than this share of the wallet's gap limit is needed. With a
# limit of 20, about five more invoices may stay unpaid after the warning.
EARLY = Fraction(3, 4)
# The maximum length of an entered name before it is checked. Valid names are shorter, but seed
# words that are entered by mistake must be recognised.
MOST_READ = 1_000
# The gap limit of most wallets. It is assumed until the merchant enters another one.
USUAL_GAP_LIMIT = 20
# This is added to the gap limit that is needed now, so that the merchant seldom has to raise the
# limit in the wallet again.
MARGIN = 100


def find_merchant(db: Database, name: str) -> Merchant:
    """Returns the merchant with this name. Raises CommandError if there is none."""
    missing = f"merchant {name!r}; `blocktill merchant list` lists them"
    return db.get_or_fail(merchants.BY_NAME, missing, name=name)


def checked_name(name: str) -> str:
    """Returns the name without surrounding blanks.

    Raises CommandError if the name is empty, not printable or too long, or if it may be
    a private key or seed words.
    """
    line = line_of("merchant's name", name, MOST_READ)
    if not line:
        raise CommandError("the merchant's name must be printable text")
    if holds_secret(line):
        raise CommandError(
            "the merchant's name reads like a private key or seed words: give another name, and if"
            " it was one of these, move its money to a new wallet"
        )
    most = MAX_CHARACTERS["name"]
    if len(line) > most:
        raise CommandError(f"the merchant's name must have at most {most} characters")
    return line


def refuse_taken(db: Database, account: Descriptor) -> None:
    """Raises CommandError if a merchant already uses this account key."""
    owner = db.get_or_none(merchants.BY_ACCOUNT_KEY, account_key=account.identity)
    if owner is not None:
        raise CommandError(
            f"merchant {owner.name} has this key already: use that merchant, or give this one"
            " another account of the wallet"
        )


def add_merchant(
    db: Database,
    name: str,
    account: Descriptor,
    now: datetime,
    next_index: int = 0,
    used_before: int = 0,
) -> Merchant:
    """Stores a merchant with an empty balance, and returns its row.

    `next_index` is the index of the address of the merchant's first invoice.
    `used_before` is the number of the account's addresses up to the last one that was
    used before the shop began; 0 if none was. Raises CommandError if the name is
    invalid, or if a merchant with this name or account key exists.
    """
    name = checked_name(name)
    refuse_taken(db, account)
    try:
        with db.write():
            db.run(
                merchants.ADD,
                name=name,
                descriptor=str(account),
                account_key=account.identity,
                next_index=next_index,
                used_before=used_before,
                created_ms=to_ms(now),
                look_ahead_ms=to_ms(now) + merchants.LOOK_AHEAD_EVERY_MS,
            )
            row = db.get(merchants.BY_NAME, name=name)
            db.run(balances.OPEN, merchant_id=row.id)
    except IntegrityError:
        raise CommandError(
            f"there is a merchant {name!r}, or one with this key, already"
        ) from None
    return row


def set_brand(
    db: Database,
    merchant_id: int,
    change: Values,
    clear: bool = False,
) -> Brand:
    """Changes columns of a merchant's brand, and returns the whole row.

    `change` has the new values, which must be valid (branding.py, business.py). If
    `clear` is True, the brand's appearance is first reset to the default. If `change` is
    empty and `clear` is False, nothing is stored.
    """
    with db.write():
        balances.lock(db, merchant_id)  # the row may not exist yet
        row = (
            db.get_or_none(merchants.BRAND, merchant_id=merchant_id)
            or merchants.NO_BRAND
        )
        if clear:
            row = replace(row, **merchants.DEFAULT_LOOKS)
        row = replace(row, **change | {"merchant_id": merchant_id})
        if clear or change:
            db.run(merchants.PUT_BRAND, **as_dict(row))
    return row


def set_currency(db: Database, merchant_id: int, currency: str) -> None:
    db.run(merchants.SET_CURRENCY, id=merchant_id, currency=currency)


def set_timezone(db: Database, merchant_id: int, timezone: str) -> None:
    """Sets the merchant's time zone, and recomputes the totals of all past days.

    Both happen in one database transaction.
    """
    with db.write():
        balances.lock(db, merchant_id)
        days.recount(db, merchant_id, timezone)
        # This is last: it locks the merchant's row, so that no new invoice can be created until
        # the database transaction ends.
        db.run(merchants.SET_TIMEZONE, id=merchant_id, timezone=timezone)


def set_mail(
    db: Database,
    merchant_id: int,
    change: Values,
    now: datetime,
) -> MerchantMail:
    """Changes a merchant's mail settings, and returns the whole row.

    `change` has the new values of columns. If `change` is empty, nothing is stored.
    """
    with db.write():
        balances.lock(db, merchant_id)  # the row may not exist yet
        row = (
            db.get_or_none(receivers.MAIL_OF, merchant_id=merchant_id)
            or receivers.NO_MAIL
        )
        row = replace(row, **change | {"merchant_id": merchant_id})
        if change:
            receivers.put_mail(db, row, to_ms(now))
    return row


class Gap(NamedTuple):
    """The gap limit that a merchant's wallet needs.

    `highest_paid` is the highest address index that was paid; None before the first
    payment. With the gap limit `limit` or a higher one, a wallet finds the address of
    each payment and of the next invoice.
    """

    highest_paid: int | None
    limit: int

    def is_well_within(self, wallet_gap_limit: int) -> bool:
        """True if a wallet with this gap limit finds all payments, and has a margin.

        At least a quarter of `wallet_gap_limit` must be left for more unpaid invoices.
        """
        return self.limit <= wallet_gap_limit * EARLY


def gap_of(
    last: int | None,
    widest: int | None,
    next_index: int,
    used: Sequence[int] = (),
    used_before: int = 0,
) -> Gap:
    """Returns the gap limit that an account needs.

    - `last` is the highest paid index in the database, and `widest` the widest gap
      between paid indexes. Both come from `gaps.LAST_AND_WIDEST`; None if no address is
      paid.
    - `next_index` is the index of the next address.
    - `used` are further paid indexes above `last`, ascending.
    - `used_before` is the number of the account's addresses up to the last one that was
      used before the shop began.
    """
    last_before_shop = used_before - 1
    if last is None:
        last = last_before_shop
    paid = [last, *used]
    highest_paid = paid[-1]
    next_unused = max(next_index, highest_paid + 1)
    # A wallet that finds index 3 finds index 7 too if it searches 4 addresses further.
    limit = widest or 0
    for before, after in pairwise([*paid, next_unused]):
        limit = max(limit, after - before)
    if highest_paid == last_before_shop:
        return Gap(None, limit)
    return Gap(highest_paid, limit)


def gap_of_merchant(db: Database, merchant: Merchant, used: Sequence[int] = ()) -> Gap:
    """Returns the gap limit that a merchant's wallet needs, from all payments seen so far.

    Unconfirmed payments count too. `used` are paid address indexes above the highest
    one in the database, ascending.
    """
    last, widest = db.get(gaps.LAST_AND_WIDEST, merchant_id=merchant.id)
    return gap_of(
        last,
        widest,
        next_index=merchant.next_index,
        used=used,
        used_before=merchant.used_before,
    )
