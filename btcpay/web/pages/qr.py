"""QR codes, as pages show them."""

from functools import lru_cache

import segno

# Trying all eight masks takes 5 ms of every page. By ISO 18004's penalties this one was the best,
# or within 5 % of the best, for the addresses and amounts sampled. Every mask can be read.
MASK = 2
KEPT_CODES = 1024  # 4 kB each; a code takes longer than all the rest of its page


@lru_cache(KEPT_CODES)
def qr_svg(text: str) -> str:
    """Inline SVG: error correction M or better, a white quiet zone of four modules, no style."""
    code = segno.make_qr(text, error="m", mask=MASK)
    return code.svg_inline(
        border=4, dark="#000", light="#fff", omitsize=True, svgclass=None, lineclass=None
    )
