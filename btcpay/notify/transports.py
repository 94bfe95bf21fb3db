"""The table of transports: ours, and what parts bring in a module `transport`."""

from btcpay.notify.command import Command
from btcpay.notify.mail.transport import Receipt
from btcpay.notify.standard_webhook import StandardWebhook
from btcpay.notify.transport import Transport
from btcpay.values.parts import brought
from storage.queries import receivers

TRANSPORTS: dict[str, Transport] = {
    receivers.WEBHOOK: StandardWebhook(),
    receivers.COMMAND: Command(),
    receivers.MAIL: Transport(),
    receivers.RECEIPT: Receipt(),
} | {part.NAME: part.TRANSPORT for part in brought("transport")}
