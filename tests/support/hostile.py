"""The worst texts that are known, and what each of them costs the shipped server's processes."""

import contextlib
import os
import socket
import time
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from http.client import HTTPResponse
from io import BytesIO
from pathlib import Path
from urllib.parse import urljoin

from gunicorn.util import unquote_to_wsgi_str
from werkzeug.test import run_wsgi_app

from tests.support.builders import Live, Shop, until

Headers = dict[str, bytes]

_TICKS = os.sysconf("SC_CLK_TCK")
# of /proc/PID/stat, behind the name: proc_pid_stat(5)
_UTIME = 11
_STIME = 12

# Each is a beginning and a piece that is repeated until the text is as long as it may be.
TEXTS = {
    "marks of two classes": ("a", "\u0315\u0300"),
    "marks in an order that normalising turns": ("https://a", "\u0345\u0327\u0300"),
    "signs that normalising makes 18 of": ("a@", "\ufdfa"),
    "Arabic digits": ("", "\u0661"),
    "digits": ("", "9"),
    "an exponent": ("1e", "9"),
    "a long fraction": ("0.", "0"),
    "groups of digits": ("1", ",000"),
    "labels of a name": ("a@", "a."),
    "labels of another script": ("https://", "\u00e9."),
    "quotes": ("a", '"'),
    "backslashes": ('"', "\\"),
    "brackets": ("wsh(", "multi(1,["),
    "percent signs": ("", "%25"),
    "signs of HTML": ("", "<"),
    "blanks and a letter": ("", " \t" * 99 + "a"),
    "line ends": ("a", "\r\n"),
    "a day of many digits": ("2036-12-31T", "0"),
    "an unknown emoji": ("", "\U0001fae9\u200d"),
    "Base58": ("xpub", "z"),
    "words": ("", "abandon "),
}


def text_of(name: str, size: int) -> bytes:
    """The text in UTF-8, of `size` bytes at most."""
    begin, piece = TEXTS[name]
    begun = begin.encode()
    repeated = piece.encode()
    return begun + repeated * ((size - len(begun)) // len(repeated))


_KEPT = frozenset(range(0x21, 0x7F)) - set(b"%&+=#")


@cache
def escaped_text(name: str, size: int) -> bytes:
    """The text in a path or query, of `size` bytes before any is escaped.

    As few are as gunicorn lets pass: it refuses bytes beyond ASCII before anybody reads them.
    """
    raw = text_of(name, size)
    return b"".join(
        bytes([byte]) if byte in _KEPT else b"%%%02X" % byte for byte in raw
    )


class Forms(HTMLParser):
    """The forms of a page: address, method, and the fields with their values."""

    def __init__(self, url: str, text: str) -> None:
        super().__init__()
        self._url = url
        self.found: list[tuple[str, str, dict[str, str]]] = []
        self._fields: dict[str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: text or "" for name, text in attrs}
        if tag == "form":
            self._fields = {}
            to = urljoin(self._url, named.get("action", ""))
            self.found.append((named.get("method", "get").upper(), to, self._fields))
        is_field = tag in ("input", "select", "textarea", "button")
        if is_field and "name" in named and self._fields is not None:
            self._fields.setdefault(named["name"], named.get("value", ""))

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._fields = None


class Meter:
    """The processor's time that the server's processes have used, however loaded a machine is."""

    def __init__(self, live: Live) -> None:
        self._master = live.pid
        self._pids = until(self._family, "a worker")

    def _family(self) -> list[int]:
        tasks = Path(f"/proc/{self._master}/task/{self._master}/children")
        children = [int(pid) for pid in tasks.read_text().split()]
        return [self._master, *children] if children else []

    def used_s(self) -> float:
        return sum(map(self._of, self._pids)) / _TICKS

    @staticmethod
    def _of(pid: int) -> int:
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return int(facts[_UTIME]) + int(facts[_STIME])


class Stranger:
    """Sends requests one after another, each of which may cost `most_s`.

    The server reads each text once in each place that a request has: path, query, form, JSON.
    It passes the bytes on whatever the field, so that all others are handed to the same
    application in this process, which takes half the time. Headers it reads itself: always.
    """

    def __init__(self, live: Live, shop: Shop, most_s: float) -> None:
        self._live = live
        self._shop = shop
        self._most_s = most_s
        self._meter = Meter(live)
        self._read: set[tuple[str, str, bytes, bool]] = set()
        self.sent = 0

    def send(
        self,
        text: str,
        where: str,
        method: str,
        target: bytes,
        body: bytes = b"",
        **headers: bytes,
    ) -> None:
        """As another visitor each time. `text` and `where` name the request if it fails."""
        place = (text, method, headers.get("Content_Type", b""), b"?" in target)
        send = self._hand_over if place in self._read else self._exchange
        self._read.add(place)
        self._measure(send, f"{text} {where}", method, target, body, headers)

    def send_to_server(
        self, what: str, method: str, target: bytes, body: bytes, **headers: bytes
    ) -> None:
        self._measure(self._exchange, what, method, target, body, headers)

    def _measure(
        self,
        send: Callable[[str, bytes, bytes, Headers], tuple[float, int, bytes]],
        what: str,
        method: str,
        target: bytes,
        body: bytes,
        headers: Headers,
    ) -> None:
        self.sent += 1
        number = f"{self.sent:08x}"
        lines = {
            "Host": b"127.0.0.1",
            "Connection": b"close",
            "Content-Length": str(len(body)).encode(),
            "X-Forwarded-For": f"2001:db8:{number[:4]}:{number[4:]}::1".encode(),
        }
        lines |= {name.replace("_", "-"): text for name, text in headers.items()}
        cost_s, status, answer = send(method, target, body, lines)
        assert status < 500 or status == 503, f"{what}: {status} {answer[:300]!r}"
        assert status != 429, f"{what} was not read: {answer[:300]!r}"
        assert cost_s <= self._most_s, f"{what}: {cost_s} s of the processor, {status}"

    def _exchange(
        self, method: str, target: bytes, body: bytes, headers: Headers
    ) -> tuple[float, int, bytes]:
        """By the server: what its processes took, the status, the answer."""
        head = b"".join(
            b"%s: %s\r\n" % (name.encode(), text) for name, text in headers.items()
        )
        before_s = self._meter.used_s()
        with socket.create_connection(
            ("127.0.0.1", self._live.port), timeout=300
        ) as client:
            with contextlib.suppress(
                OSError
            ):  # it may answer before it has read everything
                client.sendall(
                    b"%s %s HTTP/1.1\r\n%s\r\n%s"
                    % (method.encode(), target, head, body)
                )
            answer = HTTPResponse(client)
            answer.begin()
            said = answer.read()
        return self._meter.used_s() - before_s, answer.status, said

    def _hand_over(
        self, method: str, target: bytes, body: bytes, headers: Headers
    ) -> tuple[float, int, bytes]:
        """To the application as gunicorn would, three seconds after the last one."""
        path, _, query = target.decode("latin-1").partition("?")
        environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_wsgi_str(path),
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.input": BytesIO(body),
            "wsgi.url_scheme": "http",
        }
        for name, text in headers.items():
            key = name.upper().replace("-", "_")
            if key not in ("CONTENT_LENGTH", "CONTENT_TYPE"):
                key = f"HTTP_{key}"
            environ[key] = text.decode("latin-1")
        self._shop.clock.move(seconds=3)
        before_s = time.process_time()
        answer, status, _ = run_wsgi_app(self._shop.app, environ, buffered=True)
        cost_s = time.process_time() - before_s
        return cost_s, int(status.split()[0]), b"".join(answer)
