"""Builds and parses blocks of the regtest chain.

The coinbase of a built block contains the height (BIP34) and the witness commitment
(BIP141).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from btcpay.bitcoin.header import build_header, target_of
from btcpay.bitcoin.merkle import merkle_root
from btcpay.bitcoin.tx import NULL_TXID, NULL_VOUT, Outpoint, Tx, TxIn, TxOut, read_tx
from btcpay.bitcoin.wire import (
    ByteReader,
    hash256,
    hash_from_hex,
    hash_to_hex,
    ser_compact_size,
)
from btcpay.values.money import SATS_PER_BTC

BITS = 0x207FFFFF  # regtest's easiest target: every second hash meets it
VERSION = 0x20000000  # BIP9, signalling nothing
HALVING_BLOCKS = 150
FIRST_SUBSIDY_SATS = 50 * SATS_PER_BTC
FINAL_SEQUENCE = 0xFFFFFFFF
OP_1 = 0x51  # the opcodes of the numbers 1 to 16 are consecutive
COMMITMENT_PREFIX = bytes.fromhex("6a24aa21a9ed")
RESERVED = bytes(32)  # the coinbase's witness; the commitment hashes root and witness
GENESIS_RAW = bytes.fromhex(
    "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b2"
    "7ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f20020000000101000000010000"
    "000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d01044554"
    "68652054696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f6620"
    "7365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a01000000434104678afdb0"
    "fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de"
    "5c384df7ba0b8d578a4c702b6bf11d5fac00000000"
)


@dataclass(frozen=True)
class Block:
    """A block with its header fields and transactions.

    `previous`, the hash of the block before, and `merkle_root` are in reversed hex.
    `time` is in unix seconds.
    """

    version: int
    previous: str
    merkle_root: str
    time: int
    bits: int
    nonce: int
    txs: tuple[Tx, ...]

    @cached_property
    def header(self) -> bytes:
        return build_header(
            self.version,
            self.previous,
            self.merkle_root,
            self.time,
            self.bits,
            self.nonce,
        )

    @cached_property
    def hash(self) -> str:
        return hash_to_hex(hash256(self.header))

    @cached_property
    def raw(self) -> bytes:
        raw_txs = [tx.raw for tx in self.txs]
        return b"".join([self.header, ser_compact_size(len(self.txs)), *raw_txs])


def parse_block(raw: bytes) -> Block:
    """Parses a block. Raises DecodeError if it is malformed, or if more bytes follow it."""
    reader = ByteReader(raw)
    version = reader.read_uint(4)
    previous = hash_to_hex(reader.read_bytes(32))
    root = hash_to_hex(reader.read_bytes(32))
    time = reader.read_uint(4)
    bits = reader.read_uint(4)
    nonce = reader.read_uint(4)
    txs = tuple(read_tx(reader) for _ in range(reader.read_compact_size()))
    reader.finish()
    return Block(version, previous, root, time, bits, nonce, txs)


def build_block(
    previous: str,
    time: int,
    coinbase: Tx,
    txs: Sequence[Tx],
    bits: int = BITS,
) -> Block:
    """Returns a block on top of `previous`, with proof of work.

    With the default `bits`, this takes about two hashes.
    """
    contents = (coinbase, *txs)
    root = hash_to_hex(merkle_root([hash_from_hex(tx.txid) for tx in contents]))
    block = Block(VERSION, previous, root, time, bits, 0, contents)
    while int(block.hash, 16) > target_of(bits):
        block = replace(block, nonce=block.nonce + 1)
    return block


def build_coinbase(height: int, fees_sats: int, script: bytes, txs: Sequence[Tx]) -> Tx:
    """Returns a coinbase that pays the block's reward to `script`, and commits to `txs`."""
    tag = os.urandom(8)  # makes coinbases of one height differ (BIP30)
    script_sig = push_height(height) + bytes([len(tag)]) + tag
    outpoint = Outpoint(NULL_TXID, NULL_VOUT)
    origin = TxIn(outpoint, script_sig, FINAL_SEQUENCE, (RESERVED,))
    reward = TxOut(subsidy_sats(height) + fees_sats, script)
    # BIP141: the root of all wtxids, of which the coinbase's counts as zero.
    root = merkle_root([bytes(32), *(hash256(tx.raw) for tx in txs)])
    commitment = TxOut(0, COMMITMENT_PREFIX + hash256(root + RESERVED))
    return Tx(2, (origin,), (reward, commitment), 0)


def subsidy_sats(height: int) -> int:
    """Returns the new satoshis in the block at `height`.

    On regtest, they are halved every 150 blocks.
    """
    halvings = min(height // HALVING_BLOCKS, 63)  # after 63 nothing is left
    return FIRST_SUBSIDY_SATS >> halvings


def push_height(height: int) -> bytes:
    """Returns the script that pushes the height as a minimal number (BIP34).

    The numbers 1 to 16 have their own opcodes.
    """
    if height <= 16:
        return bytes([OP_1 - 1 + height])
    number = height.to_bytes(height.bit_length() // 8 + 1, "little")
    return bytes([len(number)]) + number


GENESIS = parse_block(GENESIS_RAW)
