"""A payment that nobody has sent: what an explorer that lies shows, waiting and in new blocks."""

from dataclasses import dataclass

from btcpay.bitcoin.tx import parse_tx
from btcpay.bitcoin.wire import compact_size
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.ledger import Found
from btcpay.sandbox.payer.wallet import Wallet
from btcpay.sandbox.shop import Json


@dataclass
class InventedPayment:
    """Shown in every block above `since_height`; `blocks_shown`: the number of such answers."""

    found: Found
    since_height: int
    blocks_shown: int = 0

    def put_into(self, block: Block, height: int) -> bytes:
        """The raw block with the payment, which its header does not prove."""
        if height <= self.since_height:
            return block.raw
        self.blocks_shown += 1
        txs = (*block.txs, self.found.tx)
        return block.header + compact_size(len(txs)) + b"".join(tx.raw for tx in txs)


def invent(wallet: Wallet, invoice: Json) -> InventedPayment:
    """A payment of the whole invoice. Raises BadRequest when nobody could make it."""
    chain = wallet.chain
    with chain.lock:
        tx = parse_tx(wallet.draft({invoice["deposit_address"]: invoice["amount_sats"]}))
        return InventedPayment(chain.mempool.judge(chain.ledger, tx), chain.ledger.height)
