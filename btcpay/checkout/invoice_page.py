"""What the page of an invoice may show: an allow-list, so that nothing else of a row gets out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from btcpay.branding import INVOICE
from btcpay.checkout import bip21
from btcpay.checkout.second import Second, second_of
from btcpay.settlement.values import Verdict
from btcpay.times import iso, iso_ms, to_ms
from storage.database import Row

# By then a check that runs every minute has missed many runs.
LONG_AGO_MS = 10 * 60_000
COUNTDOWN_MS = 5 * 60_000
# Where a page leads back to. While money is on its way nowhere: the shop must neither give thanks
# for it yet nor ask for it again.
RETURNS = {"paid": "return_paid"} | dict.fromkeys(
    ("waiting", "overdue", "expired", "canceled"), "return_unpaid"
)


@dataclass(frozen=True)
class Standing:
    """An invoice's row, the verdict on it, the confirmations that it needs, and the time.

    `least_sats`: what can be sent to its address.
    """

    row: Row
    verdict: Verdict
    needed: int
    now: datetime
    least_sats: int

    @property
    def left_ms(self) -> int | None:
        """Until the deadline; None when there is none."""
        expires_at = self.row["expires_at"]
        return None if expires_at is None else expires_at - to_ms(self.now)

    @property
    def state(self) -> str:
        """The status; instead of open it is seen, overdue, partial or waiting."""
        if self.row["status"] != "open":
            return self.row["status"]
        if self.verdict.missing_sats == 0:
            return "seen"
        if self.left_ms is not None and self.left_ms <= 0:
            return "overdue"
        return "partial" if self.verdict.received_sats else "waiting"


def status_of(standing: Standing) -> dict[str, Any]:
    """All that /pay/{invoice}/status answers.

    `missing_sats` is what is missing, even when that is less than can be sent.
    """
    row, verdict = standing.row, standing.verdict
    return {
        "status": row["status"],
        "amount_sats": row["amount_sats"],
        "received_sats": verdict.received_sats,
        "unconfirmed_sats": verdict.unconfirmed_sats,
        "missing_sats": verdict.missing_sats,
        "confirmations": verdict.confirmations,
        "confirmations_needed": standing.needed,
        "expires_at": row["expires_at"] and iso_ms(row["expires_at"]),
        "checked_at": row["checked_at"] and iso_ms(row["checked_at"]),
        "now": iso(standing.now),
    }


@dataclass(frozen=True)
class InvoicePage:
    """What the template gets. Amounts in satoshis, times in ms since 1970, durations in ms.

    `due_sats` is what to pay now, never less than can be sent, `owed_sats` what is missing; `uri`
    and `qr` (SVG) ask for exactly `due_sats` and are None unless `state` is waiting or partial.
    `beyond_sats` came and settles nothing: too late, too much. `return_url` leads to the shop.
    `second`: what dollars were worth in another currency.
    """

    id: str
    state: str
    status: dict[str, Any]
    amount_sats: int
    amount_usd: Decimal
    second: Second | None
    due_sats: int
    owed_sats: int
    received_sats: int
    beyond_sats: int
    confirmations: int
    confirmations_left: int
    description: str | None
    address: str
    tx_hash: str | None
    paid_at: int | None
    expires_at: int | None
    left_ms: int | None
    checked_at: int | None
    checked_ms: int | None
    return_url: str | None
    uri: str | None
    qr: str | None
    long_ago_ms: ClassVar[int] = LONG_AGO_MS
    countdown_ms: ClassVar[int] = COUNTDOWN_MS

    @property
    def is_dust(self) -> bool:
        """Whether less is owed than can be sent, so that the page asks for more."""
        return self.owed_sats < self.due_sats

    @property
    def counts_down(self) -> bool:
        """Whether so little time is left that the page shows a clock."""
        return self.left_ms is not None and self.left_ms < COUNTDOWN_MS

    @property
    def countdown(self) -> str:
        """Minutes and seconds left, rounded up to a whole second: `4:59`."""
        left_s = -(-max(0, self.left_ms or 0) // 1000)
        return f"{left_s // 60}:{left_s % 60:02d}"

    @property
    def is_unwatched(self) -> bool:
        """Whether the last look at the chain was long ago."""
        return self.checked_ms is not None and self.checked_ms > LONG_AGO_MS


def page_of(standing: Standing, brand: Mapping[str, Any]) -> InvoicePage:
    """The page's values; the brand's name is what wallets show as the recipient."""
    row, verdict = standing.row, standing.verdict
    owed_sats = verdict.missing_sats or row["amount_sats"]
    payable = standing.state in ("waiting", "partial")
    due_sats = max(owed_sats, standing.least_sats) if payable else owed_sats
    checked_at = row["checked_at"]
    return InvoicePage(
        id=row["id"],
        state=standing.state,
        status=status_of(standing),
        amount_sats=row["amount_sats"],
        amount_usd=Decimal(row["amount_usd_quote"]),
        second=second_of(row),
        due_sats=due_sats,
        owed_sats=owed_sats,
        received_sats=_received_sats(verdict),
        beyond_sats=_beyond_sats(row, verdict),
        confirmations=min(verdict.confirmations, standing.needed),
        confirmations_left=max(0, standing.needed - verdict.confirmations),
        description=row["description"] or None,
        address=row["deposit_address"],
        tx_hash=row["tx_hash"],
        paid_at=row["paid_at"],
        expires_at=row["expires_at"],
        left_ms=standing.left_ms,
        checked_at=checked_at,
        checked_ms=None if checked_at is None else to_ms(standing.now) - checked_at,
        return_url=_return_url(standing, brand),
        **_request(row, due_sats, brand["name"]) if payable else {"uri": None, "qr": None},
    )


def _return_url(standing: Standing, brand: Mapping[str, Any]) -> str | None:
    column = RETURNS.get(standing.state)
    url = brand[column] if column else None
    return url and url.replace(INVOICE, standing.row["id"])


def _request(row: Mapping[str, Any], due_sats: int, label: str | None) -> dict[str, str]:
    """The URI for the button, and its QR code without texts: a small code is read more easily."""
    address = row["deposit_address"]
    return {
        "uri": bip21.payment_uri(address, due_sats, label, row["description"]),
        "qr": bip21.qr_svg(bip21.payment_uri(address, due_sats)),
    }


def _received_sats(verdict: Verdict) -> int:
    """What counts towards the amount; of a paid invoice its settling transactions in full."""
    settling = [receipt.amount_sats for receipt in verdict.receipts if receipt.settles]
    return sum(settling) if verdict.status == "paid" else verdict.received_sats


def _beyond_sats(row: Mapping[str, Any], verdict: Verdict) -> int:
    """What came without settling: after the end, or beside what an invoice asked for."""
    if row["status"] == "open":
        return 0
    return sum(receipt.amount_sats for receipt in verdict.receipts if not receipt.settles)
