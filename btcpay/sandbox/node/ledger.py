"""The best branch, with its unspent coins, and the mempool on it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.script import OP_RETURN

MTP_BLOCKS = 11  # BIP113 and the rule for block times: the median of the last eleven
COINBASE_MATURITY_BLOCKS = 100


class ChainTx(NamedTuple):
    """A transaction with the outputs that it spends. `height` is None until a block has it."""

    tx: Tx
    prevouts: tuple[TxOut, ...]
    height: int | None

    @property
    def fee_sats(self) -> int:
        """The fee; a coinbase has none."""
        fee_sats = 0
        for prevout in self.prevouts:
            fee_sats += prevout.value_sats
        for output in self.tx.outputs:
            fee_sats -= output.value_sats
        return fee_sats

    @property
    def scripts(self) -> set[bytes]:
        """The scripts that the transaction spends from or pays to."""
        outputs = [*self.prevouts, *self.tx.outputs]
        return {output.script for output in outputs}

    def is_immature(self, tip_height: int) -> bool:
        """True for a coinbase that the block after the tip may not spend."""
        if self.height is None or not self.tx.is_coinbase:
            return False
        depth = tip_height + 1 - self.height
        return depth < COINBASE_MATURITY_BLOCKS


@dataclass
class Ledger:
    """The best branch. `blocks` and `heights` also have those of lost branches.

    `coins` are the unspent outputs, each with the transaction that made it.
    """

    hashes: list[str] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)
    heights: dict[str, int] = field(default_factory=dict)
    coins: dict[Outpoint, ChainTx] = field(default_factory=dict)
    confirmed: dict[str, ChainTx] = field(default_factory=dict)

    @property
    def height(self) -> int:
        return len(self.hashes) - 1

    @property
    def tip(self) -> Block:
        return self.blocks[self.hashes[-1]]

    @property
    def median_time_past(self) -> int:
        """The median time of the tip and the ten blocks before it, in unix seconds."""
        times = []
        for block_hash in self.hashes[-MTP_BLOCKS:]:
            block = self.blocks[block_hash]
            times.append(block.time)
        times.sort()
        return times[len(times) // 2]

    def connect(self, block: Block) -> None:
        """Adds `block` on the tip; its transactions must be valid."""
        self.hashes.append(block.hash)
        self.blocks[block.hash] = block
        self.heights[block.hash] = self.height
        for tx in block.txs:
            self._confirm(tx)

    def _confirm(self, tx: Tx) -> None:
        prevouts = []
        if not tx.is_coinbase:
            for txin in tx.inputs:
                origin = self.coins.pop(txin.outpoint)
                prevouts.append(origin.tx.outputs[txin.outpoint.vout])
        entry = ChainTx(tx, tuple(prevouts), self.height)
        self.confirmed[tx.txid] = entry
        if self.height == 0:  # nobody can spend what genesis paid
            return
        for vout, output in enumerate(tx.outputs):
            if output.script[:1] != bytes([OP_RETURN]):
                self.coins[Outpoint(tx.txid, vout)] = entry

    def branch(self, fork_height: int) -> "Ledger":
        """A ledger that ends at this height, and has the blocks above it as lost ones."""
        ledger = Ledger(blocks=dict(self.blocks), heights=dict(self.heights))
        for block_hash in self.hashes[: fork_height + 1]:
            ledger.connect(self.blocks[block_hash])
        return ledger


@dataclass
class Mempool:
    """Transactions that wait for a block, in the order they came: parents stand before children.

    Only the payer's wallet sends them, so nothing checks for a wrong signature, a fee below the
    relay's, a replacement that pays too little (BIP125), or a chain longer than nodes relay.
    """

    entries: dict[str, ChainTx] = field(default_factory=dict)

    @property
    def spenders(self) -> dict[Outpoint, str]:
        """The txid of the waiting transaction that spends each output."""
        spenders = {}
        for txid, entry in self.entries.items():
            for txin in entry.tx.inputs:
                spenders[txin.outpoint] = txid
        return spenders

    def judge(self, ledger: Ledger, tx: Tx) -> ChainTx:
        """The entry that `tx` would be. Raises BadRequest, in Bitcoin Core's words."""
        prevouts = [self._output(ledger, txin.outpoint) for txin in tx.inputs]
        return ChainTx(tx, tuple(prevouts), None)

    def add(self, entry: ChainTx) -> None:
        """Adds an entry, and drops those that spend the same coins, with all that need them."""
        spenders = self.spenders
        rivals = set()
        for txin in entry.tx.inputs:
            if txin.outpoint in spenders:
                rivals.add(spenders[txin.outpoint])
        self.remove(self.descendants(rivals))
        self.entries[entry.tx.txid] = entry

    def remove(self, txids: Iterable[str]) -> None:
        for txid in txids:
            del self.entries[txid]

    def descendants(self, txids: set[str]) -> set[str]:
        """`txids` and every waiting transaction that depends on one of them."""
        descendants = set(txids)
        for txid, entry in self.entries.items():
            if any(txin.outpoint.txid in descendants for txin in entry.tx.inputs):
                descendants.add(txid)
        return descendants

    def _output(self, ledger: Ledger, outpoint: Outpoint) -> TxOut:
        """The output to be spent, even if a waiting transaction spends it already."""
        origin = self.entries.get(outpoint.txid) or ledger.coins.get(outpoint)
        if origin is None:
            raise BadRequest("bad-txns-inputs-missingorspent")
        if origin.is_immature(ledger.height):
            raise BadRequest("bad-txns-premature-spend-of-coinbase")
        return origin.tx.outputs[outpoint.vout]
