"""The best chain with its unspent outputs, and the mempool."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.script import OP_RETURN

MTP_BLOCKS = 11  # the median time past (BIP113) is that of eleven blocks
COINBASE_MATURITY_BLOCKS = 100


class ChainTx(NamedTuple):
    """A transaction with the outputs that it spends.

    `height` is the height of its block; None while it is unconfirmed.
    """

    tx: Tx
    prevouts: tuple[TxOut, ...]
    height: int | None

    @property
    def fee_sats(self) -> int:
        """The fee in satoshis. For a coinbase, this value has no meaning."""
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
        """True if this is a coinbase whose outputs cannot be spent in the next block yet."""
        if self.height is None or not self.tx.is_coinbase:
            return False
        depth = tip_height + 1 - self.height
        return depth < COINBASE_MATURITY_BLOCKS


@dataclass
class Ledger:
    """The best chain of the sandbox.

    - `hashes`: the hashes of its blocks, by height.
    - `blocks`: the blocks by hash, including blocks that a reorganisation has removed.
    - `heights`: the heights of all these blocks, by hash.
    - `coins`: the transaction that created each unspent output, by outpoint.
    - `confirmed`: the transactions in the best chain, by txid.
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
        """Adds `block` on top of the tip. Its transactions must be valid."""
        self.hashes.append(block.hash)
        self.blocks[block.hash] = block
        self.heights[block.hash] = self.height
        for tx in block.txs:
            self._confirm(tx)

    def _confirm(self, tx: Tx) -> None:
        """Adds a transaction of the new tip: removes the spent coins, and adds its own."""
        prevouts = []
        if not tx.is_coinbase:
            for txin in tx.inputs:
                origin = self.coins.pop(txin.outpoint)
                prevouts.append(origin.tx.outputs[txin.outpoint.vout])
        entry = ChainTx(tx, tuple(prevouts), self.height)
        self.confirmed[tx.txid] = entry
        if self.height == 0:  # nobody can spend the genesis block's output
            return
        for vout, output in enumerate(tx.outputs):
            if output.script[:1] != bytes([OP_RETURN]):
                self.coins[Outpoint(tx.txid, vout)] = entry

    def branch(self, fork_height: int) -> "Ledger":
        """Returns a ledger whose tip is the block at this height.

        The ledger's `blocks` include the higher blocks, but its best chain does not.
        """
        ledger = Ledger(blocks=dict(self.blocks), heights=dict(self.heights))
        for block_hash in self.hashes[: fork_height + 1]:
            ledger.connect(self.blocks[block_hash])
        return ledger


@dataclass
class Mempool:
    """Unconfirmed transactions in the order of their arrival, parents before children.

    Unlike a real node, the mempool does not check signatures, the minimum relay fee,
    the fee of a replacement (BIP125), or the length of a chain of unconfirmed
    transactions. All transactions come from the payer's wallet, which observes these
    rules.
    """

    entries: dict[str, ChainTx] = field(default_factory=dict)

    @property
    def spenders(self) -> dict[Outpoint, str]:
        """The txids of the transactions in the mempool, by the outputs that they spend."""
        spenders = {}
        for txid, entry in self.entries.items():
            for txin in entry.tx.inputs:
                spenders[txin.outpoint] = txid
        return spenders

    def validate(self, ledger: Ledger, tx: Tx) -> ChainTx:
        """Checks the inputs of `tx`, and returns its entry without adding it.

        If an input is missing, spent or immature, raises BadRequest with the message
        that Bitcoin Core would give.
        """
        prevouts = [self._output(ledger, txin.outpoint) for txin in tx.inputs]
        return ChainTx(tx, tuple(prevouts), None)

    def add(self, entry: ChainTx) -> None:
        """Adds an entry.

        Removes the entries that spend the same coins, and the descendants of these
        entries.
        """
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
        """Returns `txids`, and the txids of all entries that depend on them."""
        descendants = set(txids)
        for txid, entry in self.entries.items():
            if any(txin.outpoint.txid in descendants for txin in entry.tx.inputs):
                descendants.add(txid)
        return descendants

    def _output(self, ledger: Ledger, outpoint: Outpoint) -> TxOut:
        """Returns the output at `outpoint`, even if another entry of the mempool spends it.

        Raises BadRequest if the output does not exist, if a block has spent it, or if
        it is immature.
        """
        origin = self.entries.get(outpoint.txid) or ledger.coins.get(outpoint)
        if origin is None:
            raise BadRequest("bad-txns-inputs-missingorspent")
        if origin.is_immature(ledger.height):
            raise BadRequest("bad-txns-premature-spend-of-coinbase")
        return origin.tx.outputs[outpoint.vout]
