"""One connection to a Bitcoin node: its handshake, and the messages sent and received.

Each wait for the node is limited in time and in bytes.
"""

import random
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import NamedTuple, TypeVar
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
PROXIED_TIMEOUT_S = 30.0  # Tor can need many seconds for a new circuit
GREETING_TIMEOUT_S = 10.0
SEND_TIMEOUT_S = 10.0
# The maximum of other messages that a peer may send before its response.
MAX_OTHER_BYTES = 8_000_000
MAX_OTHER_MESSAGES = 20_000
_PIECE_BYTES = 65_536
T = TypeVar("T")


class Message(NamedTuple):
    """A message of the peer-to-peer protocol: its command, such as "ping", and its body."""

    command: str
    body: bytes


class Connection:
    """A connection to a node. The constructor connects and does the handshake.

    - `place`: the node's host and port (host:port).
    - `count`: a function that is called each time bytes are received, with their number.
    - `relay`: True if the node shall announce transactions.
    - `proxy`: a socks5h:// URL through which hosts outside the local network are
      reached; "" means no proxy. The proxy resolves names, so onion services work.

    The attribute `greeting` is the node's version message. The constructor and the
    methods raise FetchError, or ProofFailed for malformed data. After an error the
    connection must not be used any more.
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
        # Two threads may send at once: the one that reads also replies to pings.
        self._send_lock = threading.Lock()
        self._socket = _connect(place, proxy)
        try:
            self.greeting = self._greet(relay)
        except BaseException:
            self.close()
            raise

    def send(
        self,
        command: str,
        body: bytes = b"",
        timeout_s: float = SEND_TIMEOUT_S,
    ) -> None:
        raw = messages.message(self._magic, command, body)
        try:
            with self._send_lock:
                self._socket.settimeout(timeout_s)
                self._socket.sendall(raw)
        except OSError as error:
            raise Unreachable(f"takes nothing: {error.strerror or error}") from None

    def next(self, commands: Collection[str], timeout_s: float) -> Message:
        """Returns the next message whose command is in `commands`.

        Skips other messages, but replies to pings. Raises FetchError if the message
        does not come within `timeout_s` seconds, or if too many other messages, or too
        large ones, come first. Raises ProofFailed for malformed data.
        """
        end_s = time.monotonic() + timeout_s
        other_bytes = 0
        for _ in range(MAX_OTHER_MESSAGES):
            raw = self._receive(messages.HEAD_BYTES, end_s)
            head = decode(partial(messages.parse_head, self._magic), raw)
            if head.command in commands:
                body = self._receive(head.size, end_s)
                if messages.checksum(body) != head.checksum:
                    raise ProofFailed("sent a damaged message")
                return Message(head.command, body)
            other_bytes += messages.HEAD_BYTES + head.size
            if other_bytes > MAX_OTHER_BYTES:
                break
            if head.command == "ping":
                nonce = self._receive(head.size, end_s)
                self.send("pong", nonce, _left_s(end_s))
            else:
                self._skip(head.size, end_s)
        raise FetchError("sends too much that was not asked for")

    def close(self) -> None:
        """Closes the connection. If another thread waits for a message, this ends its wait."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _greet(self, relay: bool) -> Greeting:
        """Does the handshake: each side sends its version, and confirms the version of the other.

        Raises FetchError if the node serves no blocks.
        """
        end_s = time.monotonic() + GREETING_TIMEOUT_S
        nonce = random.getrandbits(64)
        self.send("version", messages.version_body(nonce, relay))
        _, body = self.next(("version",), GREETING_TIMEOUT_S)
        greeting = decode(messages.parse_version, body)
        serves_blocks = messages.NODE_NETWORK | messages.NODE_NETWORK_LIMITED
        if not greeting.services & serves_blocks:
            raise FetchError("serves no blocks")
        self.send("verack")
        self.next(("verack",), _left_s(end_s))
        return greeting

    def _receive(self, size: int, end_s: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            data += self._receive_piece(size - len(data), end_s)
        return bytes(data)

    def _skip(self, size: int, end_s: float) -> None:
        bytes_left = size
        while bytes_left:
            bytes_left -= len(self._receive_piece(bytes_left, end_s))

    def _receive_piece(self, most: int, end_s: float) -> bytes:
        try:
            self._socket.settimeout(_left_s(end_s))
            piece = self._socket.recv(min(most, _PIECE_BYTES))
        except OSError as error:
            raise Unreachable(f"does not answer: {error.strerror or error}") from None
        if not piece:
            raise Unreachable("hung up")
        self._count(len(piece))
        return piece


def _connect(place: str, proxy: str) -> socket.socket:
    """Returns a socket connected to `place` (host:port).

    Raises Unreachable if that fails, also if it takes too long.
    """
    host, port = host_and_port(place)
    timeout_s = CONNECT_TIMEOUT_S
    if proxy:
        timeout_s = PROXIED_TIMEOUT_S
    try:
        return run_within(timeout_s, partial(_open_socket, host, port, proxy))
    # UnicodeError: the host name is not valid in DNS.
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", error)
        raise Unreachable(f"cannot be reached: {reason}") from None


def _open_socket(host: str, port: int, proxy: str) -> socket.socket:
    """Connects through the proxy; directly if there is none, or if the host is near."""
    if proxy and not is_near(host):
        return _connect_through(proxy, host, port)
    return connect_to(host, port, CONNECT_TIMEOUT_S)


def _connect_through(proxy: str, host: str, port: int) -> socket.socket:
    socks = import_module("socks")  # PySocks, an optional package
    parts = urlsplit(proxy)
    connection: socket.socket = socks.create_connection(
        (host, port),
        timeout=PROXIED_TIMEOUT_S,
        proxy_type=socks.SOCKS5,
        proxy_addr=parts.hostname,
        proxy_port=parts.port,
        proxy_rdns=True,
        proxy_username=parts.username,
        proxy_password=parts.password,
    )
    return connection


def _left_s(end_s: float) -> float:
    """Returns the seconds until the time `end_s`. Raises Unreachable if it has passed."""
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        raise Unreachable("took too long")
    return left_s


def decode(parse: Callable[[bytes], T], raw: bytes) -> T:
    """Returns `parse(raw)`. If `parse` raises DecodeError, raises ProofFailed instead.

    ProofFailed is also the error about a peer that lies. So a peer that sends malformed
    data is banned as well.
    """
    try:
        return parse(raw)
    except DecodeError as error:
        raise ProofFailed(f"sent data that does not decode: {error}") from None
