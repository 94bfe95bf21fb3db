"""What the best branch has confirmed: its blocks, unspent coins and the history of every script."""

from dataclasses import dataclass, field
from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.script import OP_RETURN

MTP_BLOCKS = 11  # BIP113 and the rule for block times: the median of the last eleven


class Coin(NamedTuple):
    """An output that can be spent; `height` is None while it waits in the mempool."""

    output: TxOut
    height: int | None
    is_coinbase: bool


class Confirmed(NamedTuple):
    """A transaction in a block of the best branch, with the coins it spent (a coinbase: none)."""

    tx: Tx
    height: int
    position: int
    spent: tuple[Coin, ...]


class Found(NamedTuple):
    """A transaction, the outputs it spends, and its block's height, None while it waits."""

    tx: Tx
    prevouts: tuple[TxOut, ...]
    height: int | None


@dataclass
class Ledger:
    """`blocks` and `heights` also keep lost branches."""

    hashes: list[str] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)
    heights: dict[str, int] = field(default_factory=dict)
    coins: dict[Outpoint, Coin] = field(default_factory=dict)
    confirmed: dict[str, Confirmed] = field(default_factory=dict)
    history: dict[bytes, list[str]] = field(default_factory=dict)

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
        for position, tx in enumerate(block.txs):
            self._confirm(tx, position)

    def disconnect(self) -> Block:
        block = self.tip
        for tx in reversed(block.txs):
            self._unconfirm(tx)
        self.hashes.pop()
        return block

    def _confirm(self, tx: Tx, position: int) -> None:
        inputs = () if tx.is_coinbase else tx.inputs
        spent = tuple(self.coins.pop(i.outpoint) for i in inputs)
        self.confirmed[tx.txid] = Confirmed(tx, self.height, position, spent)
        for vout, output in enumerate(tx.outputs):
            is_spendable = output.script[:1] != bytes([OP_RETURN])
            if self.height > 0 and is_spendable:  # nobody can spend what genesis paid
                self.coins[Outpoint(tx.txid, vout)] = Coin(output, self.height, tx.is_coinbase)
        for script in touched(tx, [coin.output for coin in spent]):
            self.history.setdefault(script, []).append(tx.txid)

    def _unconfirm(self, tx: Tx) -> None:
        spent = self.confirmed.pop(tx.txid).spent
        for vout in range(len(tx.outputs)):
            self.coins.pop(Outpoint(tx.txid, vout), None)
        for txin, coin in zip(tx.inputs, spent, strict=False):
            self.coins[txin.outpoint] = coin
        for script in touched(tx, [coin.output for coin in spent]):
            self.history[script].pop()


def touched(tx: Tx, prevouts: list[TxOut]) -> list[bytes]:
    """The scripts that a transaction pays or spends from, each once."""
    return list(dict.fromkeys(output.script for output in [*prevouts, *tx.outputs]))
