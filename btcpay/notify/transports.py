"""The table of transports: ours, and what parts bring in a module `transport`."""

from collections.abc import Iterable

from btcpay.notify.command import Command
from btcpay.notify.mail.transport import Receipt
from btcpay.notify.standard_webhook import StandardWebhook
from btcpay.notify.transport import Happened, Named, Transport
from btcpay.values.parts import brought
from storage.database import Row
from storage.queries import receivers

TRANSPORTS: dict[str, Transport] = {
    receivers.WEBHOOK: StandardWebhook(),
    receivers.COMMAND: Command(),
    receivers.MAIL: Transport(),
    receivers.RECEIPT: Receipt(),
} | {part.NAME: part.TRANSPORT for part in brought("transport")}


def told(receiver: Row, happened: Happened) -> Iterable[Named]:
    """What a receiver is told of an event: nothing when the part is gone that told it."""
    transport = TRANSPORTS.get(receiver["transport"])
    return transport.names(receiver, happened) if transport else ()
