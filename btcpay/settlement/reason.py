"""Explains to the merchant, in a sentence, why an invoice has its status. Pure."""

from collections.abc import Sequence

from btcpay.settlement.values import Output, Rules
from btcpay.values.statuses import InvoiceStatus


def describe_status(
    status: InvoiceStatus,
    counting: Sequence[Output],
    outputs: Sequence[Output],
    confirmed_sats: int,
    needed_sats: int,
    rules: Rules,
) -> str:
    """Returns one sentence for the merchant, such as "open: ...".

    `outputs` are all known outputs to the address, and `counting` those of them that
    count towards the amount. `needed_sats` is the sum that pays the invoice.
    """
    received_sats = sum(output.amount_sats for output in counting)
    if status == InvoiceStatus.PAID:
        return (
            f"paid: {confirmed_sats} satoshis confirmed, {needed_sats} were asked for"
        )
    if status == InvoiceStatus.CANCELED:
        return "canceled: what still comes is a payment without invoice"
    if status == InvoiceStatus.EXPIRED and received_sats >= needed_sats:
        return (
            "expired: too little was seen when it ended;"
            f" {received_sats} satoshis came after all"
        )
    if status == InvoiceStatus.EXPIRED:
        return f"expired: {received_sats} of {needed_sats} satoshis came in time"
    if not outputs:
        return "open: nothing has been seen at the address"
    if all(output.vanished_at for output in outputs):
        return "open: what was seen has vanished"
    if not counting:
        return "open: what was seen came before the invoice was made, or after its end"
    if received_sats < needed_sats:
        absent_sats = needed_sats - received_sats
        return f"open: {absent_sats} satoshis are missing, {received_sats} came"
    return (
        f"open: enough was seen, {confirmed_sats} of {needed_sats} satoshis have"
        f" {confirmations_text(rules.confirmations)}"
    )


def confirmations_text(count: int) -> str:
    """Returns the number with its noun, for example "1 confirmation"."""
    if count == 1:
        return "1 confirmation"
    return f"{count} confirmations"
