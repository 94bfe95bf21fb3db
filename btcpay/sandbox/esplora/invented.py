"""A payment that nobody has sent: what an explorer that lies shows, waiting and in new blocks."""

from dataclasses import dataclass

from btcpay.bitcoin.tx import Tx, TxOut, parse_tx
from btcpay.bitcoin.wire import compact_size
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.ledger import Found
from btcpay.sandbox.payer.wallet import Wallet


@dataclass
class InventedPayment:
    """In every block above `since_height`; `blocks_shown` counts how often one was asked for."""

    tx: Tx
    spent: tuple[TxOut, ...]
    since_height: int
    blocks_shown: int = 0

    def waiting(self, script: bytes) -> list[Found]:
        """What is in the mempool beside the truth, for this script."""
        pays = any(output.script == script for output in self.tx.outputs)
        return [Found(self.tx, self.spent, None)] if pays else []

    def put_into(self, block: Block, height: int) -> bytes:
        """The raw block as it is shown: its header does not prove what was put into it."""
        if height <= self.since_height:
            return block.raw
        self.blocks_shown += 1
        txs = (*block.txs, self.tx)
        return block.header + compact_size(len(txs)) + b"".join(tx.raw for tx in txs)


def invent(wallet: Wallet, address: str, amount_sats: int) -> InventedPayment:
    """Raises BadRequest for what could not be paid at all."""
    with wallet.chain.lock:
        tx = parse_tx(wallet.draft({address: amount_sats}))
        coins = {coin.outpoint: TxOut(coin.value_sats, wallet.script) for coin in wallet.coins()}
        spent = tuple(coins[txin.outpoint] for txin in tx.inputs)
        return InventedPayment(tx, spent, wallet.chain.ledger.height)
