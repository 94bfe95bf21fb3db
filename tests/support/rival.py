"""Another chain than the sandbox's: the same blocks up to a fork, then its own, as hard as told.

As an explorer's `instead` it answers what is asked of headers and blocks; the rest is passed on.
"""

from collections.abc import Sequence
from dataclasses import replace

from fake_esplora import Till, of_blocks
from serving import Reply

from btcpay.bitcoin.header import bits_of, merkle_root, target_of
from btcpay.bitcoin.tx import Tx
from btcpay.bitcoin.wire import txid_bytes, txid_hex
from btcpay.sandbox.node.block import BITS, VERSION, Block, build_coinbase

HARDER = bits_of(target_of(BITS) // 8)  # a block of this target has the work of eight


def worked(block: Block) -> Block:
    while int(block.hash, 16) > target_of(block.bits):
        block = replace(block, nonce=block.nonce + 1)
    return block


class Rival:
    """Begins as the sandbox's chain up to a height, its tip unless told otherwise."""

    def __init__(self, till: Till, height: int | None = None) -> None:
        ledger = till.sandbox.chain.ledger
        height = ledger.height if height is None else height
        self.till = till
        self.blocks = [ledger.blocks[hash] for hash in ledger.hashes[: height + 1]]
        self.asked: list[str] = []

    @property
    def height(self) -> int:
        return len(self.blocks) - 1

    def add(
        self, count: int = 1, txs: Sequence[Tx] = (), bits: int = BITS, at: int | None = None
    ) -> "Rival":
        """Blocks of its own, the first of them with `txs`; of the present unless told otherwise."""
        for number in range(count):
            inside = list(txs) if number == 0 else []
            contents = (build_coinbase(self.height + 1, 0, b"\x51", inside), *inside)
            root = txid_hex(merkle_root([txid_bytes(tx.txid) for tx in contents]))
            time = max(self.till.now if at is None else at, self.blocks[-1].time + 1)
            made = Block(VERSION, self.blocks[-1].hash, root, time, bits, 0, contents)
            self.blocks.append(worked(made))
        return self

    def __call__(self, path: str) -> Reply | None:
        """The answer of an explorer that has this chain; None for what it does not know."""
        self.asked.append(path)
        return of_blocks(dict(enumerate(self.blocks)), self.height, path)
