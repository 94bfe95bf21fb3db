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
    def scripts(self) -> set[bytes]:
        return {output.script for output in (*self.prevouts, *self.tx.outputs)}

    def is_immature(self, tip_height: int) -> bool:
        """True for a coinbase that the block after the tip may not spend."""
        if self.height is None or not self.tx.is_coinbase:
            return False
        return tip_height + 1 - self.height < COINBASE_MATURITY_BLOCKS


@dataclass
class Ledger:
    """`blocks` and `heights` also keep lost branches; `coins`: the unspent, with what made each."""

    hashes: list[str] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)
    heights: dict[str, int] = field(default_factory=dict)
    coins: dict[Outpoint, Found] = field(default_factory=dict)
    confirmed: dict[str, Found] = field(default_factory=dict)

    @property
    def height(self) -> int:
        return len(self.hashes) - 1

    @property
    def tip(self) -> Block:
        return self.blocks[self.hashes[-1]]

    @property
    def median_time_past(self) -> int:
        """The median time of the tip and the ten blocks before it, in unix seconds."""
        times = [
            self.blocks[block_hash].time for block_hash in self.hashes[-MTP_BLOCKS:]
        ]
        return sorted(times)[len(times) // 2]

    def connect(self, block: Block) -> None:
        """Adds `block` on the tip; its transactions must be valid."""
        self.hashes.append(block.hash)
        self.blocks[block.hash] = block
        self.heights[block.hash] = self.height
        for tx in block.txs:
            inputs = () if tx.is_coinbase else tx.inputs
            spent = tuple(
                self.coins.pop(i.outpoint).tx.outputs[i.outpoint.vout] for i in inputs
            )
            self.confirmed[tx.txid] = found = Found(tx, spent, self.height)
            for vout, output in enumerate(tx.outputs):
                is_spendable = output.script[:1] != bytes([OP_RETURN])
                if (
                    self.height > 0 and is_spendable
                ):  # nobody can spend what genesis paid
                    self.coins[Outpoint(tx.txid, vout)] = found

    def branch(self, fork_height: int) -> "Ledger":
        """A ledger that ends at this height, and keeps the blocks above it as lost ones."""
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

    entries: dict[str, Found] = field(default_factory=dict)

    @property
    def spenders(self) -> dict[Outpoint, str]:
        entries = self.entries.items()
        return {
            txin.outpoint: txid for txid, entry in entries for txin in entry.tx.inputs
        }

    def judge(self, ledger: Ledger, tx: Tx) -> Found:
        """The entry that `tx` would be. Raises BadRequest, in Bitcoin Core's words."""
        return Found(
            tx, tuple(self._output(ledger, i.outpoint) for i in tx.inputs), None
        )

    def add(self, entry: Found) -> None:
        """Adds an entry, and drops those that spend the same coins, with all that need them."""
        spenders = self.spenders
        spent = [i.outpoint for i in entry.tx.inputs if i.outpoint in spenders]
        self.remove(self.descendants({spenders[outpoint] for outpoint in spent}))
        self.entries[entry.tx.txid] = entry

    def remove(self, txids: Iterable[str]) -> None:
        for txid in txids:
            del self.entries[txid]

    def descendants(self, txids: set[str]) -> set[str]:
        """`txids` and every waiting transaction that depends on one of them."""
        found = set(txids)
        for txid, entry in self.entries.items():
            if any(txin.outpoint.txid in found for txin in entry.tx.inputs):
                found.add(txid)
        return found

    def _output(self, ledger: Ledger, outpoint: Outpoint) -> TxOut:
        """The output to be spent, even if a waiting transaction spends it already."""
        found = self.entries.get(outpoint.txid) or ledger.coins.get(outpoint)
        if found is None:
            raise BadRequest("bad-txns-inputs-missingorspent")
        if found.is_immature(ledger.height):
            raise BadRequest("bad-txns-premature-spend-of-coinbase")
        return found.tx.outputs[outpoint.vout]
