"""One connection to a node: greeted, and asked for one message at a time, within time and bytes."""

import random
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TypeVar
from urllib.parse import urlsplit

from btcpay.bitcoin.wire import DecodeError
from btcpay.http.connector import connect as connect_to
from btcpay.http.deadline import run_within
from btcpay.parts.peers import messages
from btcpay.parts.peers.messages import Greeting
from btcpay.values.errors import FetchError, ProofFailed, Unreachable
from btcpay.values.hosts import host_and_port, is_near
from btcpay.values.networks import Network

CONNECT_TIMEOUT_S = 5.0
PROXIED_TIMEOUT_S = 30.0  # Tor needs many seconds for a new way
GREETING_TIMEOUT_S = SEND_TIMEOUT_S = 10.0
# Bounds of all other messages that a peer may send before its answer.
MOST_BESIDE_BYTES = 8_000_000
MOST_BESIDE = 20_000
_PIECE_BYTES = 65_536
T = TypeVar("T")


class Connection:
    """`greeting` is the node's word about itself; `count` gets the number of bytes that came.

    `relay`: the node announces transactions. Hosts that are not near are reached through `proxy`, a
    URL of socks5h:// or "", which looks names up, so that onion services work.
    Its methods raise FetchError, or ProofFailed for garbled data; afterwards it is of no use.
    """

    def __init__(
        self,
        network: Network,
        place: str,
        count: Callable[[int], None],
        relay: bool = False,
        proxy: str = "",
    ) -> None:
        self._magic = network.magic
        self._count = count
        self._sending = threading.Lock()  # two threads may ask, while one of them reads
        host, port = host_and_port(place)

        def connect() -> socket.socket:
            if proxy and not is_near(host):
                return _through(proxy, host, port)
            return connect_to(host, port, CONNECT_TIMEOUT_S)

        try:
            self._socket = run_within(
                PROXIED_TIMEOUT_S if proxy else CONNECT_TIMEOUT_S, connect
            )
        except (
            OSError,
            UnicodeError,
        ) as error:  # a name may be none that can be looked up
            raise Unreachable(
                f"cannot be reached: {getattr(error, 'strerror', error)}"
            ) from None
        try:
            self.greeting = self._greet(relay)
        except BaseException:
            self.close()
            raise

    def send(
        self, command: str, body: bytes = b"", timeout_s: float = SEND_TIMEOUT_S
    ) -> None:
        try:
            with self._sending:
                self._socket.settimeout(timeout_s)
                self._socket.sendall(messages.message(self._magic, command, body))
        except OSError as error:
            raise Unreachable(f"takes nothing: {error.strerror or error}") from None

    def next(self, wanted: Collection[str], timeout_s: float) -> tuple[str, bytes]:
        """The next message of these kinds, and its body."""
        end_s = time.monotonic() + timeout_s
        beside = 0
        for _ in range(MOST_BESIDE):
            raw = self._receive(messages.HEAD_BYTES, end_s)
            head = decode(partial(messages.parse_head, self._magic), raw)
            if head.command in wanted:
                body = self._receive(head.size, end_s)
                if messages.checksum(body) != head.checksum:
                    raise ProofFailed("sent a damaged message")
                return head.command, body
            beside += messages.HEAD_BYTES + head.size
            if beside > MOST_BESIDE_BYTES:
                break
            if head.command == "ping":
                self.send("pong", self._receive(head.size, end_s), _left_s(end_s))
            else:
                self._skip(head.size, end_s)
        raise FetchError("sends too much that was not asked for")

    def close(self) -> None:
        """May be called while another thread reads, which then reads the end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _greet(self, relay: bool) -> Greeting:
        """Each side says its version and confirms the other's."""
        end_s = time.monotonic() + GREETING_TIMEOUT_S
        self.send("version", messages.version_body(random.getrandbits(64), relay))
        _, body = self.next(("version",), GREETING_TIMEOUT_S)
        greeting = decode(messages.parse_version, body)
        if not greeting.services & (
            messages.NODE_NETWORK | messages.NODE_NETWORK_LIMITED
        ):
            raise FetchError("serves no blocks")
        self.send("verack")
        self.next(("verack",), _left_s(end_s))
        return greeting

    def _receive(self, size: int, end_s: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            found += self._piece(size - len(found), end_s)
        return bytes(found)

    def _skip(self, size: int, end_s: float) -> None:
        while size:
            size -= len(self._piece(size, end_s))

    def _piece(self, most: int, end_s: float) -> bytes:
        try:
            self._socket.settimeout(_left_s(end_s))
            piece = self._socket.recv(min(most, _PIECE_BYTES))
        except OSError as error:
            raise Unreachable(f"does not answer: {error.strerror or error}") from None
        if not piece:
            raise Unreachable("hung up")
        self._count(len(piece))
        return piece


def _through(proxy: str, host: str, port: int) -> socket.socket:
    socks = import_module("socks")  # PySocks, an extra that a socks5h:// setting needs
    found = urlsplit(proxy)
    at = (host, port)
    way = (
        socks.SOCKS5,
        found.hostname,
        found.port,
        True,
        found.username,
        found.password,
    )
    connected: socket.socket = socks.create_connection(
        at, PROXIED_TIMEOUT_S, None, *way
    )
    return connected


def _left_s(end_s: float) -> float:
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        raise Unreachable("took too long")
    return left_s


def decode(parse: Callable[[bytes], T], raw: bytes) -> T:
    """Raises ProofFailed in place of DecodeError: garbled data is a lie."""
    try:
        return parse(raw)
    except DecodeError as error:
        raise ProofFailed(f"sent data that does not decode: {error}") from None
