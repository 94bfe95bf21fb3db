"""Transactions that wait for a block, in the order they came, so parents stand before children."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.node.ledger import touched


class Entry(NamedTuple):
    tx: Tx
    prevouts: tuple[TxOut, ...]
    fee_sats: int


@dataclass
class Mempool:
    entries: dict[str, Entry] = field(default_factory=dict)
    spenders: dict[Outpoint, str] = field(default_factory=dict)
    by_script: dict[bytes, dict[str, None]] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        txid = entry.tx.txid
        self.entries[txid] = entry
        self.spenders |= {txin.outpoint: txid for txin in entry.tx.inputs}
        for script in touched(entry.tx, list(entry.prevouts)):
            self.by_script.setdefault(script, {})[txid] = None

    def remove(self, txids: Iterable[str]) -> None:
        for txid in txids:
            entry = self.entries.pop(txid)
            for txin in entry.tx.inputs:
                del self.spenders[txin.outpoint]
            for script in touched(entry.tx, list(entry.prevouts)):
                del self.by_script[script][txid]

    def output(self, outpoint: Outpoint) -> TxOut | None:
        """The output of a waiting transaction, spent or not."""
        entry = self.entries.get(outpoint.txid)
        if entry is None or outpoint.vout >= len(entry.tx.outputs):
            return None
        return entry.tx.outputs[outpoint.vout]

    def conflicts(self, tx: Tx) -> set[str]:
        """The waiting transactions that spend a coin which `tx` spends."""
        spenders = {self.spenders[i.outpoint] for i in tx.inputs if i.outpoint in self.spenders}
        return spenders - {tx.txid}

    def ancestors(self, tx: Tx) -> set[str]:
        """The waiting transactions that `tx` depends on, without itself."""
        found: set[str] = set()
        queue = [tx]
        while queue:
            parents = {i.outpoint.txid for i in queue.pop().inputs} & self.entries.keys() - found
            found |= parents
            queue += [self.entries[txid].tx for txid in parents]
        return found

    def descendants(self, txids: set[str]) -> set[str]:
        """`txids` and every waiting transaction that depends on one of them."""
        found: set[str] = set()
        queue = list(txids)
        while queue:
            txid = queue.pop()
            found.add(txid)
            outputs = range(len(self.entries[txid].tx.outputs))
            spent = (self.spenders.get(Outpoint(txid, vout)) for vout in outputs)
            queue += [spender for spender in spent if spender and spender not in found]
        return found
