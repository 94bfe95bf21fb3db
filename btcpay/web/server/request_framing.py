"""Whether a request has arrived: the framing of HTTP/1.1 (RFC 9112), read while bytes come.

It says when a request can be handled without waiting for its client. Only gunicorn's parser says
where the request ends, so that the two cannot disagree about which bytes belong to it.
"""

import re
from collections.abc import Generator

MOST_HEAD_BYTES = 32_768  # request line and headers; what common proxies take too
MOST_LINE_BYTES = 1024  # a chunk's size, or one trailer
MOST_DIGITS = 18  # of a length: Python refuses to read a number with thousands of digits
# Readers ask for at least a kilobyte, and one byte too many shows that a body is too large.
BEYOND_BYTES = 2048
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)[ \t]*\r\n", re.I)
_CODING = re.compile(rb"\r\ntransfer-encoding:[ \t]*([^\r]*)", re.I)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.I)
_SIZE = re.compile(rb"[0-9a-f]{1,16}(?=[ \t;\r])", re.I)

Waiting = Generator[None, None, bool]


class Arriving:
    """One request: `take` its bytes until it `is_ready`.

    That is when it `is_whole`, or when it will be refused whatever follows. `most_body_bytes`: how
    much of a body the service reads.
    """

    def __init__(self, most_body_bytes: int) -> None:
        self.data = bytearray()
        self.is_ready = self.is_whole = False
        self.has_head = self.expects_continue = False
        self._most = most_body_bytes
        self._waiting = self._arrive()

    def take(self, data: bytes) -> None:
        """Takes more bytes, perhaps also some of the next request."""
        self.data += data
        try:
            next(self._waiting)
        except StopIteration as end:
            self.is_ready, self.is_whole = True, end.value

    def _arrive(self) -> Waiting:
        """Yields when it needs more bytes; returns whether the request is whole."""
        at = yield from self._line(b"\r\n\r\n", 0, MOST_HEAD_BYTES)
        if not at:
            return False
        self.has_head, head = True, bytes(self.data[:at])
        self.expects_continue = bool(_EXPECTS.search(head))
        if coding := _CODING.search(head):
            return coding[1].strip().lower() == b"chunked" and (yield from self._chunks(at))
        length = _LENGTH.search(head)
        if length and len(length[1]) > MOST_DIGITS:
            return False
        end = at + int(length[1]) if length else at
        if end > at + self._most:
            return False
        while len(self.data) < end:
            yield
        return True

    def _chunks(self, at: int) -> Waiting:
        """Reads what follows the head, from `at`: chunks, then trailers."""
        start, left = at, self._most + BEYOND_BYTES
        while at := (yield from self._line(b"\r\n", start, MOST_LINE_BYTES)):
            size = _SIZE.match(self.data, start)
            if not size:
                return False
            length = int(size[0], 16)
            if not length:
                return (yield from self._trailers(at))
            end = at + min(length, left)
            while len(self.data) < end:
                yield
            left -= length
            start = at + length + 2
            if left <= 0 or start > MOST_HEAD_BYTES + 2 * self._most + BEYOND_BYTES:
                return False  # too large, or cut into crumbs
        return False

    def _trailers(self, start: int) -> Waiting:
        end = start
        while at := (yield from self._line(b"\r\n", start, MOST_LINE_BYTES)):
            if at == start + 2:
                return True
            start = at
            if start > end + MOST_HEAD_BYTES:
                break
        return False

    def _line(self, mark: bytes, start: int, most: int) -> Generator[None, None, int]:
        """Where the bytes after the mark begin; 0 when there is no mark within `most`."""
        at = start
        while (found := self.data.find(mark, at, start + most)) < 0:
            if len(self.data) >= start + most:
                return 0
            at = max(start, len(self.data) - len(mark) + 1)
            yield
        return found + len(mark)
