"""The body of an answer, read within bounds: not compressed, not a page, without long values."""

import re
from collections.abc import Callable, Iterator

import requests

from btcpay.values.errors import BadStatus, Compressed, FetchError, WebPage

_PIECE_BYTES = 65536
_LONGEST_RUN = 128  # characters of one JSON value; those that we use are shorter
_PLAIN = rb'[^"\\,:\[\]{}]'
# It matches only at the start of a run, so that no byte is looked at twice.
_LONG_RUN = re.compile(rb"(?<!%b)(%b{%d})%b+" % (_PLAIN, _PLAIN, _LONGEST_RUN, _PLAIN))


def read_pieces(
    answer: requests.Response, max_bytes: int, on_piece: Callable[[int], None]
) -> Iterator[bytes]:
    """The body, piece by piece. Raises BadStatus, and FetchError if it is long or compressed."""
    if answer.status_code != 200:
        raise BadStatus(answer.status_code, answer.headers.get("Retry-After", ""))
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise Compressed
    size = 0
    while piece := answer.raw.read1(_PIECE_BYTES, decode_content=False):
        on_piece(len(piece))
        size += len(piece)
        if size > max_bytes:
            raise FetchError(f"answered more than {max_bytes} bytes")
        yield piece


def refuse_page(answer: requests.Response, body: bytes | bytearray) -> None:
    """Raises WebPage for HTML.

    Some servers send JSON with the content type of HTML; it does not begin with a tag.
    """
    is_html = "html" in answer.headers.get("Content-Type", "").lower()
    if is_html and body.lstrip().startswith(b"<"):
        raise WebPage


def append_piece(body: bytearray, piece: bytes, max_kept: int | None) -> None:
    """Appends a piece. With `max_kept` it cuts long values, which may begin in earlier pieces."""
    if max_kept is None:
        body += piece
        return
    start = max(0, len(body) - _LONGEST_RUN)
    end = bytes(body[start:]) + piece
    body[start:] = _LONG_RUN.sub(rb"\1", end)
    if len(body) > max_kept:
        raise FetchError(f"answered more than {max_kept} bytes of short values")
