"""Messages byte by byte: the vectors of the protocol's documentation, and what is refused."""

import json
from typing import Any

import pytest

from btcpay import __version__
from btcpay.bitcoin.wire import DecodeError
from btcpay.parts.peers import messages
from btcpay.values.networks import NETWORKS
from tests.support.paths import VECTORS

MAGIC = NETWORKS["mainnet"].magic
# Published: en.bitcoin.it/wiki/Protocol_documentation shows a version of 0.7.2 without its head and
# a verack with it; developer.bitcoin.org, reference, the fields of a version of 0.9.3, and the
# header that follows the first block.
PUBLISHED: dict[str, Any] = json.loads(
    (VECTORS / "messages.json").read_text(encoding="utf-8")
)
VERSION, VERACK, HEADER_1, FIRST = (
    bytes.fromhex(PUBLISHED[name])
    for name in ("version", "verack", "header 1", "genesis")
)
GENESIS = FIRST.hex()


def test_a_message_is_what_the_documentation_shows():
    assert messages.message(MAGIC, "verack") == VERACK
    assert messages.checksum(VERSION).hex() == "3b648d5a"
    assert messages.parse_version(VERSION) == (1, 0x50D0B211, 212_672)
    assert messages.getheaders_body([GENESIS]).hex() == (
        "80110100" + "01" + bytes.fromhex(GENESIS)[::-1].hex() + "00" * 32
    )
    genesis = bytes.fromhex(GENESIS)[::-1]
    assert (
        messages.getdata_body(messages.WITNESS_BLOCK, [genesis])
        == b"\x01\2\0\0@" + genesis
    )
    assert messages.parse_headers(b"\x01" + HEADER_1 + b"\x00") == [HEADER_1]
    assert messages.parse_headers(b"\x00") == []
    inventory = b"\x03" + b"".join(
        bytes([kind, 0, 0, 0]) + genesis for kind in (1, 2, 5)
    )
    assert messages.parse_inv(inventory) == [
        genesis
    ]  # BIP144: 2 is a block, 5 of a wtxid


def test_our_version_has_the_fields_that_the_documentation_shows():
    published = [bytes.fromhex(field) for field in PUBLISHED["version fields"]]
    whole = messages.message(MAGIC, "version", b"".join(published))
    assert whole[:24].hex() == "f9beb4d976657273696f6e0000000000650000005f1a69d2"
    assert messages.parse_version(whole[24:]) == (1, 1_415_483_324, 329_167)
    nonce = int.from_bytes(published[5], "little")
    name = f"/blocktill:{__version__}/".encode()
    for relay in (True, False):
        ours = [bytes(len(field)) for field in published]
        ours[0] = bytes.fromhex("80110100")  # 70016
        ours[5] = published[5]
        ours[6] = bytes([len(name)]) + name
        ours[8] = published[8] if relay else b"\x00"
        assert messages.version_body(nonce, relay) == b"".join(ours)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x01" + HEADER_1,
        b"\x01" + HEADER_1 + b"\x01",
        b"\x01" + HEADER_1 + b"\x00\x00",
        b"\xfd\x01\x00" + HEADER_1 + b"\x00",
        b"\xfd\xd1\x07" + (HEADER_1 + b"\x00") * 2001,
    ],
    ids=[
        "empty",
        "cut",
        "with a transaction",
        "more behind",
        "a long length",
        "2,001 of them",
    ],
)
def test_headers_that_no_node_sends_are_malformed(body):
    with pytest.raises(DecodeError):
        messages.parse_headers(body)


@pytest.mark.parametrize("cut", [0, 4, 20, 80, 85, 99])
def test_a_version_that_is_cut_is_malformed(cut):
    with pytest.raises(DecodeError):
        messages.parse_version(VERSION[:cut])


def test_a_head_of_another_network_or_of_too_many_bytes_is_malformed():
    def head(magic, command, size):
        return (
            magic + command.ljust(12, b"\x00") + size.to_bytes(4, "little") + bytes(4)
        )

    for command, size in [(b"block", 4_000_000), (b"verack", 0), (b"any", 4_000_000)]:
        assert messages.parse_head(MAGIC, head(MAGIC, command, size)).size == size
        with pytest.raises(DecodeError):
            messages.parse_head(MAGIC, head(MAGIC, command, size + 1))
    with pytest.raises(DecodeError):
        messages.parse_head(MAGIC, head(NETWORKS["regtest"].magic, b"verack", 0))
    assert len({network.magic for network in NETWORKS.values()}) == len(NETWORKS)
