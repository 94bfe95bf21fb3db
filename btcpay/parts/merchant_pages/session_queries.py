"""The query for a merchant's session, with the counts that every page shows."""

from typing import Any

from peewee import Select

from btcpay import hooks
from storage.models import Attention, Merchant
from storage.queries import sessions
from storage.statement import count_of, rows_as

MOST_IN_INBOX = 100


class Session(sessions.Session):
    """A merchant's session.

    - `wanting`: the number of things that need the merchant's attention: invoices, and
      rows of parts (optional plug-ins), such as refunds. It is MOST_IN_INBOX if there
      are more.
    - `others`: 1 if the service has another merchant, else 0.

    For each part whose hook has an `inbox`, there is one more column with the number of
    its rows. The column's name is `inbox_column(part)`.
    """

    wanting: int
    others: int


def _inbox() -> Any:
    """Returns a subquery for the ids of what needs the attention of a merchant.

    The merchant is the row of `Merchant` in the outer query. The ids are those of
    invoices, and of rows of parts (optional plug-ins). UNION (`|`) drops duplicates.
    """
    ids: Any = Attention.select(Attention.invoice_id).where(
        Attention.merchant_id == Merchant.id
    )
    for part in hooks.of(hooks.MerchantViews):
        if part.inbox is not None:
            ids = ids | part.inbox
    return ids


def _in_part_inboxes() -> list[Select]:
    """Returns, for each part with an inbox, a column with the number of ids in this inbox."""
    return [
        count_of(part.inbox, MOST_IN_INBOX).alias(inbox_column(name))
        for name, part in hooks.by_part(hooks.MerchantViews).items()
        if part.inbox is not None
    ]


def inbox_column(part: str) -> str:
    """Returns the name of the column with the number of rows in this part's inbox."""
    return f"{part}_waiting"


_Other = Merchant.alias()
_OTHERS = _Other.select(_Other.id).where(_Other.id != Merchant.id)

# One SQL statement loads what every page needs, including the counts of all parts.
SESSION = rows_as(
    Session,
    sessions.BY_SECRET.select_extend(
        count_of(_inbox(), MOST_IN_INBOX).alias("wanting"),
        count_of(_OTHERS, 1).alias("others"),
        *_in_part_inboxes(),
    ),
)
