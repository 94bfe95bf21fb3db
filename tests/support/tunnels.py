"""Proxies on real sockets: SOCKS5 (RFC 1928, RFC 1929) and HTTP, which may also fail as told.

`asked` lists where a client wanted to go, as it wrote it; every name leads to `target` here, since
none of them is in the DNS. `instead` is what is sent in place of the answer to the request to
connect: bytes, and then, while the connection is open, more of them one at a time.
"""

import select
import socket
from dataclasses import dataclass, field

from tests.support.serving import Listening


@dataclass
class Proxy(Listening):
    """The pipe to the target, which both kinds have."""

    target: int
    login: bytes = b""
    instead: tuple[bytes, bytes] | None = None
    closes: bool = False
    asked: list[tuple[str, int]] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)
    scheme = ""

    def __post_init__(self) -> None:
        super().__init__()

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.place}"

    def answer(self, client: socket.socket, granted: bytes, first: bytes = b"") -> None:
        """Lets the client through, or does what is to be done instead."""
        if self.closes:
            return
        if self.instead is not None:
            self._drip(client, *self.instead)
            return
        with socket.create_connection(("127.0.0.1", self.target), 20) as server:
            client.sendall(granted)
            server.sendall(first)
            self._join(client, server)

    def _drip(self, client: socket.socket, start: bytes, more: bytes) -> None:
        client.sendall(start)
        while not self.released.wait(0.05):
            if more:
                client.sendall(more)

    @staticmethod
    def _join(one: socket.socket, other: socket.socket) -> None:
        ends = {one: other, other: one}
        while True:
            for ready in select.select([one, other], [], [], 20)[0]:
                if not (piece := ready.recv(65536)):
                    return
                ends[ready].sendall(piece)


class Socks(Proxy):
    scheme = "socks5h"

    def meet(self, client: socket.socket) -> None:
        stream = client.makefile("rb")
        methods = stream.read(stream.read(2)[1])
        if b"\x02" in methods:
            client.sendall(b"\x05\x02")
            stream.read(1)
            self.logins.append(
                b":".join(stream.read(stream.read(1)[0]) for _ in range(2))
            )
            client.sendall(b"\x01\x00")
        else:
            client.sendall(b"\x05\x00")
        kind = stream.read(4)[3]
        if kind == 3:
            host = stream.read(stream.read(1)[0]).decode()
        else:
            family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            host = socket.inet_ntop(family, stream.read(size))
        self.asked.append((host, int.from_bytes(stream.read(2))))
        self.answer(client, b"\x05\x00\x00\x01" + bytes(6))


class Http(Proxy):
    """CONNECT for https, whole URLs for http."""

    scheme = "http"

    def meet(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(65536)
        line, *headers = head.split(b"\r\n")
        self.logins += [
            h.split(b" ")[-1] for h in headers if h.startswith(b"Proxy-Auth")
        ]
        method, where, _ = line.decode().split(" ")
        if method == "CONNECT":
            host, _, port = where.rpartition(":")
            self.asked.append((host, int(port)))
            self.answer(client, b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            host, _, port = where.split("/")[2].partition(":")
            self.asked.append((host, int(port or 80)))
            self.answer(client, b"", head)
