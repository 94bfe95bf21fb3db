"""The statuses of stored things, and the states that are derived from them.

A row holds the plain string that is stored: compare it with `==`, never with `is`.
"""

from enum import StrEnum


class InvoiceStatus(StrEnum):
    OPEN = "open"
    PAID = "paid"
    EXPIRED = "expired"
    CANCELED = "canceled"


class CheckoutState(StrEnum):
    """What an invoice's page shows: its status; if it is open, what has come so far."""

    WAITING = "waiting"
    PARTIAL = "partial"
    SEEN = "seen"
    OVERDUE = "overdue"
    PAID = InvoiceStatus.PAID.value
    EXPIRED = InvoiceStatus.EXPIRED.value
    CANCELED = InvoiceStatus.CANCELED.value


class LinkStatus(StrEnum):
    """A payment link's."""

    ACTIVE = "active"
    INACTIVE = "inactive"


class BillStatus(StrEnum):
    OPEN = "open"
    PAID = "paid"
    ENDED = "ended"


class RefundStatus(StrEnum):
    """`requested` until its address is known, then `ready` until a block has it."""

    REQUESTED = "requested"
    READY = "ready"
    SENT = "sent"
    CANCELED = "canceled"


class DeliveryState(StrEnum):
    """A notification's, for one receiver."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given up"
