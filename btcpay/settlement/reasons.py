"""The state of an invoice explained to the merchant in a sentence. Pure."""

from collections.abc import Sequence

from btcpay.settlement.values import Output, Rules


def reason_why(
    status: str,
    counting: Sequence[Output],
    outputs: Sequence[Output],
    confirmed_sats: int,
    needed_sats: int,
    rules: Rules,
) -> str:
    """The sentence; `counting`: the outputs that count towards the amount."""
    received_sats = sum(output.amount_sats for output in counting)
    if status == "paid":
        return f"paid: {confirmed_sats} satoshis confirmed, {needed_sats} were asked for"
    if status == "canceled":
        return "canceled: what still comes is a payment without invoice"
    if status == "expired" and received_sats >= needed_sats:
        return (
            f"expired: too little was seen when it ended; {received_sats} satoshis came after all"
        )
    if status == "expired":
        return f"expired: {received_sats} of {needed_sats} satoshis came in time"
    if not counting:
        return _nothing_counts(outputs)
    if received_sats < needed_sats:
        return f"open: {needed_sats - received_sats} satoshis are missing, {received_sats} came"
    return (
        f"open: enough was seen, {confirmed_sats} of {needed_sats} satoshis have"
        f" {confirmations_text(rules.confirmations)}"
    )


def _nothing_counts(outputs: Sequence[Output]) -> str:
    if not outputs:
        return "open: nothing has been seen at the address"
    if all(output.vanished for output in outputs):
        return "open: what was seen has vanished"
    return "open: what was seen came before the invoice was made, or after its end"


def confirmations_text(count: int) -> str:
    return f"{count} confirmation{'' if count == 1 else 's'}"
