"""Messages of Bitcoin's peer-to-peer protocol: their bytes, without any connection. Pure.

Source: BIP31, 37, 130, 144 and the protocol's developer reference (developer.bitcoin.org).
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from btcpay import __version__
from btcpay.bitcoin.header import HEADER_BYTES
from btcpay.bitcoin.wire import (
    ByteReader,
    DecodeError,
    hash256,
    hash_from_hex,
    ser_compact_size,
    ser_string,
    ser_uint32,
)

VERSION = 70016  # the version we speak: Bitcoin Core's since 0.21
HEAD_BYTES = 24
MOST_HEADERS = 2000  # of one message
TX = 1  # an inventory's announcement, by txid
# BIP144: with witnesses
WITNESS_TX = 0x40000001
WITNESS_BLOCK = 0x40000002
MOST_ANNOUNCED = 50_000  # of one message: Bitcoin Core's MAX_INV_SZ
_INVENTORY = 9 + 36 * MOST_ANNOUNCED
# BIP111: also shows its mempool; BIP159: a pruned node has the last 288 blocks.
NODE_NETWORK = 1
NODE_BLOOM = 4
NODE_NETWORK_LIMITED = 1024
# Bytes of a message's body, at most; messages of other kinds are not kept.
LIMITS = {
    "version": 1024,
    "verack": 0,
    "ping": 8,
    "headers": 3 + MOST_HEADERS * (HEADER_BYTES + 1),
    "block": 4_000_000,  # BIP141
    "notfound": _INVENTORY,
    "inv": _INVENTORY,
    "tx": 400_000,  # nobody passes on more: Bitcoin Core's MAX_STANDARD_TX_WEIGHT
}
MAX_BODY_BYTES = 4_000_000  # Bitcoin Core, net.h: MAX_PROTOCOL_MESSAGE_LENGTH
_NOWHERE = bytes(26)  # services, address and port of nobody
_head = Struct("<4s12sI4s")
_version_begins = Struct("<iQq")


class Head(NamedTuple):
    """The head before a body: its kind, its length and the beginning of its double SHA-256."""

    command: str
    size: int
    checksum: bytes


class Greeting(NamedTuple):
    """A peer's word about itself: `time` in unix seconds, `height` of its best block."""

    services: int
    time: int
    height: int


def checksum(body: bytes) -> bytes:
    return hash256(body)[:4]


def message(magic: bytes, command: str, body: bytes = b"") -> bytes:
    """A whole message; `command` of at most twelve ASCII letters."""
    return _head.pack(magic, command.encode(), len(body), checksum(body)) + body


def parse_head(magic: bytes, raw: bytes) -> Head:
    """The head in 24 bytes. Raises DecodeError for another network's, and for too long a body."""
    found, command, size, check = _head.unpack(raw)
    if found != magic:
        raise DecodeError("it speaks another protocol, or of another network")
    name = command.rstrip(b"\x00").decode("ascii", "replace")
    if size > LIMITS.get(name, MAX_BODY_BYTES):
        raise DecodeError(f"a message of {size} bytes is too long")
    return Head(name, size, check)


def version_body(nonce: int, relay: bool = False) -> bytes:
    """We serve nothing, and do not reveal our time. `relay`: transactions are announced (BIP37)."""
    agent = ser_string(f"/blocktill:{__version__}/".encode())
    begins = _version_begins.pack(VERSION, 0, 0)
    ends = nonce.to_bytes(8, "little") + agent + ser_uint32(0) + bytes([relay])
    return begins + _NOWHERE + _NOWHERE + ends


def parse_version(body: bytes) -> Greeting:
    """Raises DecodeError. Later additions to the protocol, at the end, are not read."""
    reader = ByteReader(body)
    _, services, time = _version_begins.unpack(reader.read_bytes(_version_begins.size))
    reader.read_bytes(2 * len(_NOWHERE) + 8)
    reader.read_string()  # its name
    return Greeting(services, time, reader.read_uint(4))


def getheaders_body(locator: Sequence[str], stop: str = "00" * 32) -> bytes:
    """Asks for headers above the first hash of the locator that the peer has.

    An empty one asks for the header `stop` alone. Hashes in reversed hex.
    """
    hashes = b"".join(map(hash_from_hex, locator))
    return (
        ser_uint32(VERSION)
        + ser_compact_size(len(locator))
        + hashes
        + hash_from_hex(stop)
    )


def parse_headers(body: bytes) -> list[bytes]:
    """Headers of 80 bytes each. Raises DecodeError."""
    reader = ByteReader(body)
    count = reader.read_compact_size()
    if count > MOST_HEADERS:
        raise DecodeError(f"{count} headers are too many")
    headers = []
    for _ in range(count):
        headers.append(reader.read_bytes(HEADER_BYTES))
        if reader.read_compact_size():
            raise DecodeError("a header has transactions")
    reader.finish()
    return headers


def getdata_body(kind: int, hashes: Sequence[bytes]) -> bytes:
    return ser_compact_size(len(hashes)) + b"".join(
        ser_uint32(kind) + one for one in hashes
    )


def parse_inv(body: bytes) -> list[bytes]:
    """The txids that it announces; other kinds are left out. Raises DecodeError."""
    reader = ByteReader(body)
    found = [
        (reader.read_uint(4), reader.read_bytes(32))
        for _ in range(reader.read_compact_size())
    ]
    reader.finish()
    return [hash for kind, hash in found if kind == TX]
