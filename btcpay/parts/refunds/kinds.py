"""The kinds of events about refunds, and the JSON form of a refund in an event."""

from btcpay import hooks
from btcpay.notify.kinds import Kind, PartResource, properties_beside
from btcpay.parts.refunds import queries


class RefundKind(Kind):
    REQUESTED = (
        "refund.requested",
        "A refund was made, or its address forgotten: its page waits for the payer's address.",
    )
    READY = (
        "refund.ready",
        "The refund has an address: the merchant's wallet can send it.",
    )
    SENT = ("refund.sent", "A block has the transaction that sends the refund.")
    UNDONE = (
        "refund.undone",
        "A reorganisation took back the transaction that sent the refund: it is ready again.",
    )
    CANCELED = ("refund.canceled", "The owner canceled the refund before it was sent.")


PROPERTIES = properties_beside(__file__)
STATE = ("status", "address", "tx_hash", "sent_ms")
RESOURCE = PartResource(
    name="refund",
    prefix="rfd",
    kinds=RefundKind,
    by_id=queries.BY_ID,
    state=STATE,
    properties=PROPERTIES,
)


HOOK = hooks.EventKinds(resource=RESOURCE)
