"""Blocks to prove: real ones of the main chain, small ones from nothing, the worst there are."""

import gzip
from collections.abc import Iterable, Sequence
from itertools import count

from btcpay.bitcoin.header import build_header, parse_header
from btcpay.bitcoin.merkle import merkle_root
from btcpay.bitcoin.tx import (
    NULL_TXID,
    NULL_VOUT,
    SEGWIT_MARKER,
    Outpoint,
    Tx,
    TxIn,
    TxOut,
)
from btcpay.bitcoin.wire import (
    hash256,
    hash_from_hex,
    hash_to_hex,
    ser_compact_size,
    ser_string,
    ser_uint32,
)
from tests.support.paths import VECTORS

REAL = {
    "413567": "0000000000000000025aff8be8a55df8f89c77296db6198f272d6577325d4069",
    "2021-09": "000000000000000000000c835b2adcaedc20fdf6ee440009c249452c726dafae",
    "866342": "000000000000000000014ce9ba7c6760053c3c82ce6ab43d60afb101d3c8f1f1",
}
MINED_AT_S = 1_800_000_000
BITS = 0x207FFFFF  # regtest: every second hash meets it
P2WPKH = b"\x00\x14" + b"\xab" * 20
WEIGHT = 4_000_000  # of a block, at most (BIP141)


def real_block(name: str) -> bytes:
    return gzip.decompress((VECTORS / "blocks" / f"{name}.raw.gz").read_bytes())


def real_headers() -> list[bytes]:
    """The main chain's first 10,237."""
    raw = gzip.decompress((VECTORS / "blocks" / "headers-0-10236.bin.gz").read_bytes())
    return [raw[at : at + 80] for at in range(0, len(raw), 80)]


def header_over(txids: Sequence[bytes]) -> bytes:
    root = hash_to_hex(merkle_root(txids))
    raws = (
        build_header(4, "11" * 32, root, MINED_AT_S, BITS, nonce) for nonce in count()
    )
    return next(raw for raw in raws if parse_header(raw).has_work)


def flipped(raw: bytes, bit: int) -> bytes:
    changed = bytearray(raw)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def hash_of(raw: bytes) -> str:
    return hash_to_hex(hash256(raw[:80]))


def block_of(txs: Sequence[Tx]) -> bytes:
    return block_of_raw([tx.raw for tx in txs], [hash_from_hex(tx.txid) for tx in txs])


def block_of_raw(raws: Sequence[bytes], txids: Sequence[bytes] | None = None) -> bytes:
    """A block of serialised transactions; their ids are needed where one has a witness."""
    ids = txids or [hash256(raw) for raw in raws]
    return header_over(ids) + ser_compact_size(len(raws)) + b"".join(raws)


def coinbase(script: bytes = P2WPKH, script_sig: bytes = b"\x03\x01\x02\x03") -> Tx:
    origin = TxIn(Outpoint(NULL_TXID, NULL_VOUT), script_sig, 0xFFFFFFFF, (bytes(32),))
    return Tx(2, (origin,), (TxOut(50 * 10**8, script),), 0)


def payment(number: int, *outputs: TxOut, witness: tuple[bytes, ...] = ()) -> Tx:
    """One that spends an outpoint of its own."""
    spent = TxIn(Outpoint(f"{number:064x}", number), b"", 0xFFFFFFFD, witness)
    return Tx(2, (spent,), outputs or (TxOut(1_000 + number, P2WPKH),), 0)


# The worst that consensus lets pass: one kind of part as often as it fits beside the coinbase.
ROOM = (
    WEIGHT - 4 * (81 + coinbase().vsize) - 400
)  # 400: the other parts of the transaction


def _fits(size: int) -> range:
    """Numbers of the parts of so many bytes without witness."""
    return range(ROOM // 4 // size)


def _with_witness(witness: bytes) -> bytes:
    tx = payment(1)
    raw = (
        tx.without_witness[:4]
        + SEGWIT_MARKER
        + tx.without_witness[4:-4]
        + witness
        + tx.without_witness[-4:]
    )
    return block_of_raw(
        [coinbase().raw, raw], [hash_from_hex(coinbase().txid), hash_from_hex(tx.txid)]
    )


def _with_outputs(outputs: Iterable[TxOut]) -> bytes:
    return block_of([coinbase(), payment(1, *outputs)])


def _with_inputs() -> bytes:
    spent = tuple(TxIn(Outpoint(f"{number:064x}", 0), b"", 0) for number in _fits(41))
    return block_of([coinbase(), Tx(2, spent, (TxOut(1, P2WPKH),), 0)])


WORST = {
    # One weight unit each.
    "four million empty witness items": lambda: _with_witness(
        b"\xfe" + ser_uint32(ROOM) + bytes(ROOM)
    ),
    "one witness item of tens of kilobytes": (
        lambda: _with_witness(b"\x01" + ser_string(b"\xff" * 60_000))
    ),
    "one witness item of nearly four megabytes": (
        lambda: _with_witness(b"\x01" + ser_string(b"\xff" * (ROOM - 10)))
    ),
    "as many inputs as fit": _with_inputs,
    "as many empty outputs as fit": lambda: _with_outputs(
        TxOut(1, b"") for _ in _fits(9)
    ),
    "as many payments to one script as fit": (
        lambda: _with_outputs(TxOut(1, P2WPKH) for _ in _fits(31))
    ),
    "as many payments to other scripts as fit": lambda: _with_outputs(
        TxOut(2**40, b"\x00\x14" + number.to_bytes(20, "big")) for number in _fits(31)
    ),
    # One input, one output, no scripts.
    "as many transactions as fit": (
        lambda: block_of(
            [coinbase(), *(payment(number, TxOut(1, b"")) for number in _fits(60))]
        )
    ),
}
