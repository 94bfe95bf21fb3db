"""Reads response bodies with limits on their size, encoding and content."""

import re
from collections.abc import Callable, Iterator

import requests

from btcpay.values.errors import BadStatus, Compressed, FetchError, WebPage

_PIECE_BYTES = 65536
# Bodies up to this size are read in parallel, longer ones one at a time.
SMALL_BYTES = 65536
_LONGEST_RUN = 128  # longer JSON values are truncated; those that we use are shorter
_PLAIN = rb'[^"\\,:\[\]{}]'
# Matches only at the start of a run of plain characters, so that the time is linear.
_LONG_RUN = re.compile(rb"(?<!%b)(%b{%d})%b+" % (_PLAIN, _PLAIN, _LONGEST_RUN, _PLAIN))


def read_body(
    answer: requests.Response,
    max_bytes: int,
    max_kept: int | None,
    on_piece: Callable[[int], None],
    before_long: Callable[[], None],
) -> bytearray:
    """Reads a response's body of at most `max_bytes`.

    If `max_kept` is not None, the body is JSON: its long values are truncated while
    they arrive, and then it must have at most `max_kept` bytes. `on_piece` is called
    with the size of each piece in bytes. `before_long` is called once, before the body
    exceeds SMALL_BYTES, and never for a smaller body.

    Raises BadStatus for a status other than 200, Compressed for an encoded body, and
    FetchError if the body is too large.
    """
    body = bytearray()
    is_long = False
    for piece in _read_pieces(answer, max_bytes, on_piece):
        if not is_long and len(body) + len(piece) > SMALL_BYTES:
            is_long = True
            before_long()
        _append_piece(body, piece, max_kept)
    return body


def _read_pieces(
    answer: requests.Response,
    max_bytes: int,
    on_piece: Callable[[int], None],
) -> Iterator[bytes]:
    """Yields a response's body in pieces, as they arrive.

    `on_piece` is called with the size of each piece in bytes. Raises BadStatus for a
    status other than 200, Compressed for an encoded body, and FetchError if the body
    exceeds `max_bytes`.
    """
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
    """Raises WebPage if the response is an HTML page.

    The body must also begin with a tag, since some servers send JSON with the content
    type of HTML.
    """
    is_html = "html" in answer.headers.get("Content-Type", "").lower()
    if is_html and body.lstrip().startswith(b"<"):
        raise WebPage


def _append_piece(body: bytearray, piece: bytes, max_kept: int | None) -> None:
    """Appends a piece of a response body to `body`.

    If `max_kept` is not None, the body is JSON, and its values are truncated to 128
    characters. Then raises FetchError if the truncated body is longer than `max_kept`
    bytes.
    """
    if max_kept is None:
        body += piece
        return
    # A long value may have begun in an earlier piece, so the end of the body is included.
    end_start = max(0, len(body) - _LONGEST_RUN)
    end_and_piece = bytes(body[end_start:]) + piece
    body[end_start:] = _LONG_RUN.sub(rb"\1", end_and_piece)
    if len(body) > max_kept:
        raise FetchError(f"answered more than {max_kept} bytes of short values")
