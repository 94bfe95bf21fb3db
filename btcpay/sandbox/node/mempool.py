"""Transactions that wait for a block, in the order they came, so parents stand before children.

The payer's wallet alone sends any: what it cannot make, such as a wrong signature, a fee below the
relay's or a replacement that pays too little (BIP125), is not looked for.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.ledger import Found, Ledger

MAX_CHAIN_TXS = 25  # Bitcoin Core's limit of waiting ancestors, and of waiting descendants
COINBASE_MATURITY_BLOCKS = 100


@dataclass
class Mempool:
    entries: dict[str, Found] = field(default_factory=dict)
    spenders: dict[Outpoint, str] = field(default_factory=dict)

    def judge(self, ledger: Ledger, tx: Tx) -> Found:
        """The entry that it would be. Raises BadRequest, in Bitcoin Core's words."""
        entry = Found(tx, tuple(self._output(ledger, i.outpoint) for i in tx.inputs), None)
        replaced, ancestors = self.replaced(tx), self.ancestors(tx)
        families = (self.descendants({ancestor}) - replaced for ancestor in ancestors)
        if len(ancestors) >= MAX_CHAIN_TXS or any(len(f) >= MAX_CHAIN_TXS for f in families):
            raise BadRequest("too-long-mempool-chain")
        return entry

    def add(self, entry: Found) -> None:
        """In the place of what it replaces."""
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

    def _output(self, ledger: Ledger, outpoint: Outpoint) -> TxOut:
        """The output that is to be spent; a waiting transaction may already spend it."""
        if parent := self.entries.get(outpoint.txid):
            return parent.tx.outputs[outpoint.vout]
        if (coin := ledger.coins.get(outpoint)) is None:
            raise BadRequest("bad-txns-inputs-missingorspent")
        if coin.is_coinbase and ledger.height + 1 - coin.height < COINBASE_MATURITY_BLOCKS:
            raise BadRequest("bad-txns-premature-spend-of-coinbase")
        return coin.output
