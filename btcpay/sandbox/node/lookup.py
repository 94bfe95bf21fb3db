"""Reading the chain and its mempool as one: transactions, spends, and what concerns a script."""

from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.node.chain import Chain


class Found(NamedTuple):
    """A transaction, the outputs it spends, and its block's height, None while it waits."""

    tx: Tx
    prevouts: tuple[TxOut, ...]
    height: int | None


def find(chain: Chain, txid: str) -> Found | None:
    """The transaction on the best branch or in the mempool; None when it is in neither."""
    if txid in chain.mempool.entries:
        entry = chain.mempool.entries[txid]
        return Found(entry.tx, entry.prevouts, None)
    confirmed = chain.ledger.confirmed.get(txid)
    if confirmed is None:
        return None
    return Found(confirmed.tx, tuple(coin.output for coin in confirmed.spent), confirmed.height)


def spender(chain: Chain, outpoint: Outpoint) -> tuple[str, int] | None:
    """Txid and input index of what spends an output, confirmed or waiting."""
    return chain.ledger.spenders.get(outpoint) or chain.mempool.spenders.get(outpoint)


def confirmed_of(chain: Chain, script: bytes) -> list[Found]:
    """The confirmed transactions that touch a script, newest first."""
    found = [find(chain, txid) for txid in reversed(chain.ledger.history.get(script, []))]
    return [each for each in found if each]


def waiting_of(chain: Chain, script: bytes) -> list[Found]:
    """The waiting transactions that touch a script, newest first."""
    found = [find(chain, txid) for txid in reversed(chain.mempool.by_script.get(script, {}))]
    return [each for each in found if each]
