"""The best branch: its blocks, unspent coins and the history of every script."""

from dataclasses import dataclass, field
from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.script import OP_RETURN

MTP_BLOCKS = 11  # BIP113 and the rule for block times: the median of the last eleven


class Coin(NamedTuple):
    """An unspent output of a block."""

    output: TxOut
    height: int
    is_coinbase: bool


class Found(NamedTuple):
    """A transaction, the outputs that it spends, and its block's height, None while it waits."""

    tx: Tx
    prevouts: tuple[TxOut, ...]
    height: int | None

    @property
    def fee_sats(self) -> int:
        """The fee; a coinbase has none."""
        paid_sats = sum(output.value_sats for output in self.tx.outputs)
        return sum(prevout.value_sats for prevout in self.prevouts) - paid_sats

    @property
    def scripts(self) -> list[bytes]:
        """The scripts that it spends from or pays, each once."""
        outputs = [*self.prevouts, *self.tx.outputs]
        return list(dict.fromkeys(output.script for output in outputs))


@dataclass
class Ledger:
    """`blocks` and `heights` also keep lost branches."""

    hashes: list[str] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)
    heights: dict[str, int] = field(default_factory=dict)
    coins: dict[Outpoint, Coin] = field(default_factory=dict)
    confirmed: dict[str, Found] = field(default_factory=dict)
    history: dict[bytes, list[Found]] = field(default_factory=dict)

    @property
    def height(self) -> int:
        return len(self.hashes) - 1

    @property
    def tip(self) -> Block:
        return self.blocks[self.hashes[-1]]

    def median_time_past(self, block_hash: str) -> int:
        """The median time of a block and the ten before it, in unix seconds."""
        times: list[int] = []
        while block_hash in self.blocks and len(times) < MTP_BLOCKS:
            times.append(self.blocks[block_hash].time)
            block_hash = self.blocks[block_hash].previous
        return sorted(times)[len(times) // 2]

    def connect(self, block: Block) -> None:
        """Adds `block` on the tip; its transactions must be valid."""
        self.hashes.append(block.hash)
        self.blocks[block.hash] = block
        self.heights[block.hash] = self.height
        for tx in block.txs:
            self._confirm(tx)

    def branch(self, fork_height: int) -> "Ledger":
        """A ledger that ends at this height, and keeps the blocks above it as lost ones."""
        ledger = Ledger(blocks=dict(self.blocks), heights=dict(self.heights))
        for block_hash in self.hashes[: fork_height + 1]:
            ledger.connect(self.blocks[block_hash])
        return ledger

    def _confirm(self, tx: Tx) -> None:
        inputs = () if tx.is_coinbase else tx.inputs
        spent = tuple(self.coins.pop(i.outpoint).output for i in inputs)
        self.confirmed[tx.txid] = found = Found(tx, spent, self.height)
        for vout, output in enumerate(tx.outputs):
            is_spendable = output.script[:1] != bytes([OP_RETURN])
            if self.height > 0 and is_spendable:  # nobody can spend what genesis paid
                self.coins[Outpoint(tx.txid, vout)] = Coin(output, self.height, tx.is_coinbase)
        for script in found.scripts:
            self.history.setdefault(script, []).append(found)
