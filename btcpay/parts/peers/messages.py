"""Encodes and decodes messages of Bitcoin's peer-to-peer protocol.

All functions compute their result from their arguments alone.

Source: BIP31, 37, 130, 144 and the protocol's developer reference
(developer.bitcoin.org).
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

PROTOCOL_VERSION = 70016  # Bitcoin Core's since 0.21
HEAD_BYTES = 24
CHECKSUM_BYTES = 4
MAX_HEADERS = 2000  # of one message: Bitcoin Core's MAX_HEADERS_RESULTS
# Types of inventory entries. The last two are a transaction and a block with witnesses
# (BIP144).
TX = 1
WITNESS_TX = 0x40000001
WITNESS_BLOCK = 0x40000002
MAX_INV = 50_000  # entries of one message: Bitcoin Core's MAX_INV_SZ
_MAX_INV_BYTES = 9 + 36 * MAX_INV
# Service bits. NODE_BLOOM (BIP111): the node also replies to `mempool`.
# NODE_NETWORK_LIMITED (BIP159): a pruned node has the last 288 blocks.
NODE_NETWORK = 1
NODE_BLOOM = 4
NODE_NETWORK_LIMITED = 1024
# The maximum number of bytes of a message's body, by command. Messages with other
# commands are skipped.
MAX_BYTES_BY_COMMAND = {
    "version": 1024,
    "verack": 0,
    "ping": 8,
    "headers": 3 + MAX_HEADERS * (HEADER_BYTES + 1),
    "block": 4_000_000,  # BIP141
    "notfound": _MAX_INV_BYTES,
    "inv": _MAX_INV_BYTES,
    "tx": 400_000,  # nobody relays more: Bitcoin Core's MAX_STANDARD_TX_WEIGHT
}
MAX_BODY_BYTES = 4_000_000  # Bitcoin Core, net.h: MAX_PROTOCOL_MESSAGE_LENGTH
NO_HASH = "00" * 32
_NO_ADDRESS = bytes(26)  # services, IP address and port, all zero
_head = Struct("<4s12sI4s")
_version_start = Struct("<iQq")


class Head(NamedTuple):
    """The header of a message: its command, and the size and checksum of its body."""

    command: str
    size: int
    checksum: bytes


class Greeting(NamedTuple):
    """What a peer claims about itself in its version message.

    `services` are its service bits, `time` is its clock in unix seconds, and `height`
    is the height of its best block.
    """

    services: int
    time: int
    height: int


def checksum(body: bytes) -> bytes:
    return hash256(body)[:CHECKSUM_BYTES]


def message(magic: bytes, command: str, body: bytes = b"") -> bytes:
    """Encodes a message with its header.

    `magic` are the four bytes with which messages of the network begin. `command` must
    have at most twelve ASCII characters.
    """
    return _head.pack(magic, command.encode(), len(body), checksum(body)) + body


def parse_head(magic: bytes, raw: bytes) -> Head:
    """Decodes the 24 bytes of a message's header.

    `magic` are the four bytes with which messages of our network begin. Raises
    DecodeError if the message is of another network, or if its body is too long.
    """
    their_magic, padded_command, size, check = _head.unpack(raw)
    if their_magic != magic:
        raise DecodeError("it speaks another protocol, or of another network")
    command = padded_command.rstrip(b"\x00").decode("ascii", "replace")
    if size > MAX_BYTES_BY_COMMAND.get(command, MAX_BODY_BYTES):
        raise DecodeError(f"a message of {size} bytes is too long")
    return Head(command, size, check)


def version_body(nonce: int, relay: bool = False) -> bytes:
    """Returns the body of our version message.

    If `relay` is True, the peer announces transactions to us (BIP37). The message
    claims no services, and does not reveal our time.
    """
    services = 0
    time = 0
    start = _version_start.pack(PROTOCOL_VERSION, services, time)
    user_agent = ser_string(f"/blocktill:{__version__}/".encode())
    height = ser_uint32(0)
    end = nonce.to_bytes(8, "little") + user_agent + height + bytes([relay])
    return start + _NO_ADDRESS + _NO_ADDRESS + end


def parse_version(body: bytes) -> Greeting:
    """Decodes a version message. Raises DecodeError if it is malformed.

    Ignores the fields that later versions of the protocol have added at the end.
    """
    reader = ByteReader(body)
    start = reader.read_bytes(_version_start.size)
    _, services, time = _version_start.unpack(start)
    reader.read_bytes(2 * len(_NO_ADDRESS) + 8)  # two addresses and the nonce
    reader.read_string()  # the user agent
    return Greeting(services, time, reader.read_uint(4))


def getheaders_body(locator: Sequence[str], stop: str = NO_HASH) -> bytes:
    """Returns the body of a request for the headers that follow a known block.

    The known block is the first one of `locator` that is in the peer's chain. If
    `locator` is empty, only the header with the hash `stop` is requested. Hashes are in
    reversed hex.
    """
    hashes = b"".join(map(hash_from_hex, locator))
    count = ser_compact_size(len(locator))
    return ser_uint32(PROTOCOL_VERSION) + count + hashes + hash_from_hex(stop)


def parse_headers(body: bytes) -> list[bytes]:
    """Returns the headers in a headers message, each of 80 bytes.

    Raises DecodeError if the message is malformed.
    """
    reader = ByteReader(body)
    count = reader.read_compact_size()
    if count > MAX_HEADERS:
        raise DecodeError(f"{count} headers are too many")
    headers = []
    for _ in range(count):
        headers.append(reader.read_bytes(HEADER_BYTES))
        if reader.read_compact_size():
            raise DecodeError("a header has transactions")
    reader.finish()
    return headers


def getdata_body(kind: int, hashes: Sequence[bytes]) -> bytes:
    entries = [ser_uint32(kind) + hash for hash in hashes]
    return ser_compact_size(len(entries)) + b"".join(entries)


def parse_inv(body: bytes) -> list[bytes]:
    """Returns the txids in an inv message, without entries of other types.

    Raises DecodeError if the message is malformed.
    """
    reader = ByteReader(body)
    txids = []
    for _ in range(reader.read_compact_size()):
        kind = reader.read_uint(4)
        hash = reader.read_bytes(32)
        if kind == TX:
            txids.append(hash)
    reader.finish()
    return txids
