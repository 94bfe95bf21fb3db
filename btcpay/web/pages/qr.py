"""Payment URIs (BIP21), and QR codes as pages show them."""

from functools import lru_cache
from urllib.parse import quote

import segno

from btcpay.values.money import btc_text

# To try all eight masks takes 5 ms of every page. By ISO 18004's penalties this one was the best,
# or within 5 % of the best, for the addresses and amounts sampled. Every mask can be read.
MASK = 2
CACHED_CODES = 1024  # 4 kB each; a code takes longer than all the rest of its page
MESSAGE_CHARACTERS = 100  # a wallet shows a line of it


@lru_cache(CACHED_CODES)
def qr_svg(text: str) -> str:
    """Inline SVG: error correction M or better, a white quiet zone of four modules, no style."""
    code = segno.make_qr(text, error="m", mask=MASK)
    return code.svg_inline(
        border=4,
        dark="#000",
        light="#fff",
        omitsize=True,
        svgclass=None,
        lineclass=None,
    )


def payment_uri(
    address: str, amount_sats: int, label: str | None = None, message: str | None = None
) -> str:
    """The URI of a payment request (BIP21).

    `label`: who is paid. `message`: what for, cut after MESSAGE_CHARACTERS.
    """
    uri = f"bitcoin:{address}?amount={btc_text(amount_sats)}"
    if label:
        uri += f"&label={quote(label, safe='')}"
    if message:
        uri += f"&message={quote(message[:MESSAGE_CHARACTERS], safe='')}"
    return uri
