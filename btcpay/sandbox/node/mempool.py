"""Transactions that wait for a block, in the order they came, so parents stand before children.

The payer's wallet alone sends them, so nothing looks for a wrong signature, a fee below the
relay's, a replacement that pays too little (BIP125), or a chain longer than nodes relay.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.ledger import Found, Ledger

COINBASE_MATURITY_BLOCKS = 100


@dataclass
class Mempool:
    entries: dict[str, Found] = field(default_factory=dict)
    spenders: dict[Outpoint, str] = field(default_factory=dict)

    def judge(self, ledger: Ledger, tx: Tx) -> Found:
        """The entry that `tx` would be. Raises BadRequest, in Bitcoin Core's words."""
        return Found(tx, tuple(self._output(ledger, i.outpoint) for i in tx.inputs), None)

    def add(self, entry: Found) -> None:
        """Adds an entry, in place of those that it replaces."""
        self.remove(self.replaced(entry.tx))
        self.entries[entry.tx.txid] = entry
        self.spenders |= {txin.outpoint: entry.tx.txid for txin in entry.tx.inputs}

    def remove(self, txids: Iterable[str]) -> None:
        for txid in txids:
            for txin in self.entries.pop(txid).tx.inputs:
                del self.spenders[txin.outpoint]

    def replaced(self, tx: Tx) -> set[str]:
        """The waiting transactions that spend what `tx` spends, and what depends on them."""
        spends = (i.outpoint for i in tx.inputs if i.outpoint in self.spenders)
        return self.descendants({self.spenders[outpoint] for outpoint in spends})

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

    def _output(self, ledger: Ledger, outpoint: Outpoint) -> TxOut:
        """The output to be spent, even if a waiting transaction spends it already."""
        if parent := self.entries.get(outpoint.txid):
            return parent.tx.outputs[outpoint.vout]
        if (coin := ledger.coins.get(outpoint)) is None:
            raise BadRequest("bad-txns-inputs-missingorspent")
        if coin.is_coinbase and ledger.height + 1 - coin.height < COINBASE_MATURITY_BLOCKS:
            raise BadRequest("bad-txns-premature-spend-of-coinbase")
        return coin.output
