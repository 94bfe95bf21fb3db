"""Payment URIs (BIP21)."""

from urllib.parse import quote

from btcpay.values.money import btc_text

MESSAGE_CHARACTERS = 140  # a wallet shows a line of it


def payment_uri(
    address: str, amount_sats: int, label: str | None = None, message: str | None = None
) -> str:
    """`label` is who is paid, `message` what for, which is cut after MESSAGE_CHARACTERS."""
    uri = f"bitcoin:{address}?amount={btc_text(amount_sats)}"
    if label:
        uri += f"&label={quote(label, safe='')}"
    if message:
        uri += f"&message={quote(message[:MESSAGE_CHARACTERS], safe='')}"
    return uri
