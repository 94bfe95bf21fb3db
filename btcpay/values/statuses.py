"""The stored statuses of invoices, links and others, and states computed from them.

Rows contain plain strings, so compare a status with `==`, never with `is`.
"""

from enum import StrEnum


class InvoiceStatus(StrEnum):
    OPEN = "open"
    PAID = "paid"
    EXPIRED = "expired"
    CANCELED = "canceled"


class CheckoutState(StrEnum):
    """The state that an invoice's page shows.

    A paid, expired or canceled invoice has its status as the state. An open invoice has
    the state of its payment: `waiting` (nothing seen), `partial`, `seen` (all of it,
    not yet confirmed), or `overdue` (its time is over, but it is not yet decided).
    """

    WAITING = "waiting"
    PARTIAL = "partial"
    SEEN = "seen"
    OVERDUE = "overdue"
    PAID = InvoiceStatus.PAID.value
    EXPIRED = InvoiceStatus.EXPIRED.value
    CANCELED = InvoiceStatus.CANCELED.value


class LinkStatus(StrEnum):
    """The status of a payment link."""

    ACTIVE = "active"
    INACTIVE = "inactive"


class RefundStatus(StrEnum):
    """The status of a refund.

    A refund is `requested` until its address is known, then `ready` until a block
    contains the refund's output, then `sent`.
    """

    REQUESTED = "requested"
    READY = "ready"
    SENT = "sent"
    CANCELED = "canceled"


class DeliveryState(StrEnum):
    """The state of an event's or mail's delivery to one receiver."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given up"
