"""A node of the network on a real socket: shows a chain of blocks, or misbehaves as told."""

import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from btcpay.bitcoin.tx import Tx
from btcpay.bitcoin.wire import (
    ByteReader,
    hash_from_hex,
    hash_to_hex,
    ser_compact_size,
    ser_string,
)
from btcpay.chain.explorers.pool import Explorers
from btcpay.check.run import Checker
from btcpay.http import http_client
from btcpay.parts.peers.listener import PeerListener
from btcpay.parts.peers.messages import (
    NODE_NETWORK,
    TX,
    WITNESS_BLOCK,
    getdata_body,
    message,
)
from btcpay.parts.peers.source import Peers
from btcpay.sandbox.node.block import Block
from tests.support.builders import REGTEST
from tests.support.fake_esplora import Till
from tests.support.serving import Listening

Blocks = Callable[[], Sequence[Block]]
# Gets a peer, the connection and a message; whether nothing else is to be answered.
Bad = Callable[["FakePeer", socket.socket, str, bytes], bool]


def chain_of(till: Till) -> Blocks:
    """The chain that the shop is paid on."""

    chains: dict[str, Sequence[Block]] = {}  # the last one, by its tip

    def blocks() -> Sequence[Block]:
        ledger = till.sandbox.chain.ledger  # another one after a reorganisation
        tip = ledger.hashes[-1]
        if tip not in chains:
            chains.clear()
            return chains.setdefault(
                tip, [ledger.blocks[hash] for hash in ledger.hashes]
            )
        return chains[tip]

    return blocks


def honest(peer: "FakePeer", sock: socket.socket, command: str, body: bytes) -> bool:
    return False


class FakePeer(Listening):
    """Has the chain that `blocks` says, by height; `asked` are the messages that came.

    `waits` has what waits, by txid; `listeners` are connections to which transactions are relayed.

    `now`: its clock, in unix seconds.
    """

    def __init__(
        self,
        blocks: Blocks,
        now: Callable[[], int],
        bad: Bad = honest,
        magic: bytes = REGTEST.magic,
        services: int = NODE_NETWORK,
    ) -> None:
        self.blocks = blocks
        self.now = now
        self.bad = bad
        self.magic = magic
        self.services = services
        self.asked: list[str] = []
        self.waits: dict[bytes, bytes] = {}
        self.listeners: list[socket.socket] = []
        self._by_hash: dict[str, Block] = {}
        self._indexed = ""
        super().__init__()

    def send(self, sock: socket.socket, command: str, body: bytes = b"") -> None:
        sock.sendall(message(self.magic, command, body))

    def announce(self, *transactions: Tx, kind: int = TX) -> None:
        """To whoever listens by now."""
        hashes = [hash_from_hex(tx.txid) for tx in transactions]
        self.waits |= zip(hashes, (tx.raw for tx in transactions), strict=True)
        for sock in self.listeners:
            with suppress(OSError):
                self.send(sock, "inv", getdata_body(kind, hashes))

    def meet(self, sock: socket.socket) -> None:
        stream = sock.makefile("rb")
        try:
            while head := stream.read(24):
                _, command, size, _ = struct.unpack("<4s12sI4s", head)
                body = stream.read(size)
                name = command.rstrip(b"\x00").decode()
                self.asked.append(name)
                if not self.bad(self, sock, name, body):
                    self._answer(sock, name, body)
        finally:
            self.listeners = [one for one in self.listeners if one is not sock]

    def _answer(self, sock: socket.socket, command: str, body: bytes) -> None:
        reader = ByteReader(body)
        if command == "version":
            greeting = struct.pack("<iQq", 70016, self.services, self.now()) + bytes(60)
            height = struct.pack("<I", len(self.blocks()) - 1)
            self.send(
                sock, "version", greeting + ser_string(b"/fake:1/") + height + b"\x01"
            )
            # what nobody asked for is passed over
            self.send(sock, "sendcmpct", bytes(9))
            self.send(sock, "verack")
            self.send(sock, "ping", b"12345678")
            if body.endswith(b"\x01"):
                self.listeners.append(sock)
        elif command == "mempool":
            self.send(sock, "inv", getdata_body(TX, list(self.waits)))
        elif command == "getheaders":
            reader.read_bytes(4)
            locator = [
                hash_to_hex(reader.read_bytes(32))
                for _ in range(reader.read_compact_size())
            ]
            self.send(
                sock,
                "headers",
                headers_body(self.after(locator, hash_to_hex(reader.read_bytes(32)))),
            )
        elif command == "getdata":
            for _ in range(reader.read_compact_size()):
                kind = reader.read_uint(4)
                wanted = reader.read_bytes(32)
                raw = self.waits.get(wanted)
                if kind == WITNESS_BLOCK:
                    raw = self._raw_block(hash_to_hex(wanted))
                found = "block" if kind == WITNESS_BLOCK else "tx"
                self.send(
                    sock,
                    found if raw else "notfound",
                    raw or getdata_body(kind, [wanted]),
                )

    def _raw_block(self, hash: str) -> bytes | None:
        """From an index of the chain, which is made again when it has another tip."""
        blocks = self.blocks()
        tip = blocks[-1].hash
        if self._indexed != tip:
            self._by_hash = {block.hash: block for block in blocks}
            self._indexed = tip
        block = self._by_hash.get(hash)
        return block.raw if block else None

    def after(self, locator: Sequence[str], stop: str) -> list[bytes]:
        """As Bitcoin Core: behind the first of the locator that it has, or from genesis on."""
        chain = list(self.blocks())
        heights = {block.hash: height for height, block in enumerate(chain)}
        if not locator:
            return [chain[heights[stop]].header] if stop in heights else []
        fork = next((heights[hash] for hash in locator if hash in heights), 0)
        return [block.header for block in chain[fork + 1 : fork + 2001]]


def over_peers(till: Till, *places: str, kind: type[Peers] = Peers) -> Checker:
    """A check that asks these nodes, without a pause, and no explorer."""
    nobody = Explorers(till.settings.network, (), http_client.Session())
    checker = till.checker(explorers=nobody)
    settings = replace(checker.settings, explorers=(), peers=places)
    opened = kind(settings, till.shop.service.db, till.clock, lambda _: None)
    return replace(checker, settings=settings, sources=opened)


def headers_body(headers: Sequence[bytes]) -> bytes:
    return ser_compact_size(len(headers)) + b"".join(
        header + b"\x00" for header in headers
    )


def of(command: str, bad: Bad) -> Bad:
    """Misbehaves when it gets this message."""

    def when(peer: FakePeer, sock: socket.socket, asked: str, body: bytes) -> bool:
        return asked == command and bad(peer, sock, asked, body)

    return when


def false_block(peer: FakePeer, sock: socket.socket, command: str, body: bytes) -> bool:
    newest = peer.blocks()[-1]
    older = peer.blocks()[-2]
    peer.send(sock, "block", newest.header + older.raw[80:])
    return True


def deafen(listener: PeerListener) -> None:
    """Ends all connections and threads of a listener, which a command has until it ends."""
    for peer in listener._peers:
        peer.stop.set()
        if peer.connection:
            peer.connection.close()
