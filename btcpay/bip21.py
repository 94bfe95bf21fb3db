"""Payment URIs (BIP21) and their QR codes."""

from urllib.parse import quote

import segno

from btcpay.money import btc_text


def payment_uri(address: str, amount_sats: int, message: str | None = None) -> str:
    """`bitcoin:` in lower case, the amount in bitcoin without exponent, texts percent-encoded."""
    uri = f"bitcoin:{address}?amount={btc_text(amount_sats)}"
    return f"{uri}&message={quote(message, safe='')}" if message else uri


def qr_svg(text: str) -> str:
    """The text as inline SVG: error correction M or better, quiet zone of four modules, white."""
    code = segno.make_qr(text, error="m")
    return code.svg_inline(scale=4, border=4, dark="#000", light="#fff", omitsize=True)
