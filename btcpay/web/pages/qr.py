"""Makes payment URIs (BIP21), and QR codes as SVG."""

from functools import lru_cache
from urllib.parse import quote

import segno

from btcpay.values.money import btc_text

# One of the eight mask patterns of ISO 18004. Readers can decode each of them. To try all of them
# takes 5 ms. For a sample of addresses and amounts, the penalty of this mask was within 5 % of the
# best one.
MASK = 2
# 4 kB each; generating a code takes longer than rendering the rest of its page.
CACHED_CODES = 1024
MESSAGE_CHARACTERS = 100  # wallets show about one line of the message


@lru_cache(CACHED_CODES)
def qr_svg(text: str) -> str:
    """Returns a QR code as inline SVG.

    It has error correction level M or better, a white margin of four modules (the quiet
    zone of the standard), and no CSS.
    """
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
    address: str,
    amount_sats: int,
    label: str | None = None,
    message: str | None = None,
) -> str:
    """Returns the URI of a payment request (BIP21).

    `label` is the name of the recipient. `message` is the purpose of the payment; it is
    truncated to MESSAGE_CHARACTERS.
    """
    uri = f"bitcoin:{address}?amount={btc_text(amount_sats)}"
    if label:
        uri += f"&label={quote(label, safe='')}"
    if message:
        uri += f"&message={quote(message[:MESSAGE_CHARACTERS], safe='')}"
    return uri
