"""What the page of an invoice may show: an allow-list, so that nothing else of a row gets out."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from btcpay.checkout import bip21
from btcpay.checkout.snapshot import Notices, Snapshot, status_of
from btcpay.merchants.branding import INVOICE
from btcpay.values.currencies import Money, asked_of, price_of, rounded, value_of
from btcpay.values.times import to_ms
from storage.database import Row

BLOCK_MINUTES = 10  # on average, on every public network
# Where a page leads back to, unless its invoice says it. While money is on its way nowhere: it is
# too early for thanks.
RETURNS = {"paid": "return_paid"} | dict.fromkeys(
    ("waiting", "overdue", "expired", "canceled"), "return_unpaid"
)
FROM_ROW = ("id", "amount_sats", "tx_hash", "paid_at", "expires_at", "checked_at", "reference")


@dataclass(frozen=True)
class InvoicePage:
    """What the template gets. Times in ms since 1970, durations in ms.

    `due_sats` is what to pay now, never less than can be sent, `owed_sats` what is missing, and
    `due` what that is in `currency` at the invoice's price, `beside` in the merchant's own; `uri`
    and `qr` (SVG) ask for exactly `due_sats` and are None unless `state` is waiting or partial.
    `beyond_sats` came and settles nothing: too late, too much. `return_url` leads to the shop,
    `link_id` to a link that makes another invoice.
    """

    id: str
    state: str
    status: dict[str, Any]
    notices: Notices
    amount_sats: int
    currency: str
    amount: Decimal
    due_sats: int
    due: Decimal
    beside: Money | None
    owed_sats: int
    received_sats: int
    beyond_sats: int
    beyond: Decimal
    confirmations: int
    confirmations_left: int
    description: str | None
    reference: str | None
    address: str
    tx_hash: str | None
    paid_at: int | None
    expires_at: int | None
    left_ms: int | None
    life_ms: int | None
    checked_at: int | None
    checked_ms: int | None
    return_url: str | None
    link_id: str | None
    uri: str | None
    qr: str | None
    # By then a check that runs every minute has missed many runs.
    long_ago_ms: ClassVar[int] = 10 * 60_000
    countdown_ms: ClassVar[int] = 5 * 60_000

    @property
    def is_dust(self) -> bool:
        return self.owed_sats < self.due_sats

    @property
    def counts_down(self) -> bool:
        return self.left_ms is not None and self.left_ms < self.countdown_ms

    @property
    def countdown(self) -> str:
        """Minutes and seconds left, rounded up to a whole second: `4:59`."""
        left_s = -(-max(0, self.left_ms or 0) // 1000)
        return f"{left_s // 60}:{left_s % 60:02d}"

    @property
    def ring_percent(self) -> int:
        """How much of the ring is drawn: the time that is left, or the confirmations there are."""
        if self.state == "seen":
            return 100 * self.confirmations // self.status["confirmations_needed"]
        if not self.uri:
            return 0
        return 100 * max(0, self.left_ms or 0) // self.life_ms if self.life_ms else 100

    @property
    def usual_minutes(self) -> int:
        return BLOCK_MINUTES * self.confirmations_left

    @property
    def is_unwatched(self) -> bool:
        return self.checked_ms is not None and self.checked_ms > self.long_ago_ms


def page_of(snapshot: Snapshot, brand: Mapping[str, Any], notices: Notices) -> InvoicePage:
    """The page's values; the brand's name is what wallets show as the recipient."""
    row, state = snapshot.row, snapshot.state
    payable = state in ("waiting", "partial")
    owed_sats = snapshot.missing_sats if payable else row["amount_sats"]
    due_sats = max(owed_sats, snapshot.least_sats) if payable else owed_sats
    amount, currency = asked_of(row)
    price = price_of(row)
    due = value_of(due_sats, price, currency) if state == "partial" else amount
    beyond_sats = _beyond_sats(snapshot)
    checked_at, expires_at = row["checked_at"], row["expires_at"]
    return InvoicePage(
        **{name: row[name] for name in FROM_ROW},
        state=state,
        status=status_of(snapshot),
        notices=notices,
        currency=currency,
        amount=amount,
        due_sats=due_sats,
        due=due,
        beside=_beside(row, due),
        owed_sats=owed_sats,
        received_sats=row["received_sats"],
        beyond_sats=beyond_sats,
        beyond=value_of(beyond_sats, price, currency),
        confirmations=min(snapshot.confirmations, snapshot.needed),
        confirmations_left=max(0, snapshot.needed - snapshot.confirmations),
        description=row["description"] or None,
        address=row["deposit_address"],
        left_ms=snapshot.left_ms,
        life_ms=None if expires_at is None else expires_at - row["created_at"],
        checked_ms=None if checked_at is None else to_ms(snapshot.now) - checked_at,
        return_url=_return_url(snapshot, brand),
        link_id=row["payment_link_id"] if notices.link_is_active and not beyond_sats else None,
        **_request(snapshot, due_sats, brand["name"]) if payable else {"uri": None, "qr": None},
    )


def _beside(row: Row, due: Decimal) -> Money | None:
    """What dollars were worth in the merchant's own currency when the invoice was made."""
    if row["amount"] is not None or row["currency"] == "USD":
        return None
    exact = due * Decimal(row["price"]) / Decimal(row["price_usd"])
    return Money(rounded(exact, row["currency"]), row["currency"])


def _return_url(snapshot: Snapshot, brand: Mapping[str, Any]) -> str | None:
    column = RETURNS.get(snapshot.state)
    url = snapshot.row["return_url"] or (brand[column] if column else None)
    return url and url.replace(INVOICE, snapshot.row["id"])


def _request(snapshot: Snapshot, due_sats: int, label: str | None) -> dict[str, str]:
    """The URI for the button, and its QR code without texts: a small code is read more easily."""
    address = snapshot.row["deposit_address"]
    return {
        "uri": bip21.payment_uri(address, due_sats, label, snapshot.row["description"]),
        "qr": bip21.qr_svg(bip21.payment_uri(address, due_sats)),
    }


def _beyond_sats(snapshot: Snapshot) -> int:
    """What came without settling: after the end, too little at it, or more than was asked for.

    Too much that is less than can be sent is none: nobody could send it back.
    """
    row, state = snapshot.row, snapshot.state
    if state in ("overdue", "expired", "canceled"):
        return max(row["beside_sats"], row["received_sats"])
    if state not in ("seen", "paid"):
        return 0
    came_sats = row["received_sats"] + (row["beside_sats"] if state == "paid" else 0)
    beyond_sats = came_sats - row["amount_sats"]
    return beyond_sats if beyond_sats >= snapshot.least_sats else 0
