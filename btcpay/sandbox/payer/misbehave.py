"""Tricks of a payer before a payment is final: replace it, or take it back."""

from collections.abc import Sequence

from btcpay.bitcoin.tx import TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.ledger import Found
from btcpay.sandbox.payer.coins import Spendable, choose, total
from btcpay.sandbox.payer.wallet import Wallet


def replace(wallet: Wallet, now: int, txid: str = "", away: bool = False) -> str:
    """Pays the newest payment or `txid` anew, or `away` to the wallet (BIP125); the new txid.

    Raises BadRequest when no such payment waits, or it cannot be replaced.
    """
    with wallet.chain.lock:
        entry = _waiting_payment(wallet, txid)
        coins = _spent_coins(entry)
        outputs = [] if away else [o for o in entry.tx.outputs if o.script != wallet.script]
        fee_sats = _fee_sats(wallet, entry, outputs)
        missing_sats = sum(o.value_sats for o in outputs) + fee_sats - total(coins)
        if missing_sats > 0:  # confirmed coins: a replacement may add no waiting ones (rule 2)
            coins += choose([coin for coin in wallet.coins() if not coin.waiting], missing_sats)
        return wallet.chain.accept(wallet.build(coins, outputs, fee_sats), now)


def double_spends(wallet: Wallet, depth: int) -> list[bytes]:
    """Raw transactions that take back the wallet's payments of the last `depth` blocks.

    A payment from coins that these blocks made needs none: it falls with the one before it.
    """
    with wallet.chain.lock:
        ledger = wallet.chain.ledger
        txs = [tx for lost in ledger.hashes[-depth:] for tx in ledger.blocks[lost].txs[1:]]
        made = {tx.txid for tx in txs}
        first = [tx for tx in txs if not made & {i.outpoint.txid for i in tx.inputs}]
        found = [wallet.chain.find(tx.txid) for tx in first]
        spent = [_spent_coins(f) for f in found if wallet.owns(f.prevouts)]
        return [wallet.build(c, [], wallet.usual_fee_sats(len(c), [])) for c in spent]


def _waiting_payment(wallet: Wallet, txid: str) -> Found:
    own = wallet.payments()
    if not own:
        raise BadRequest("no payment of the sandbox wallet is waiting; press pay first")
    if txid and txid not in own:
        raise BadRequest(f"{txid} is no waiting payment of the sandbox wallet")
    return wallet.chain.mempool.entries[txid or own[0]]


def _spent_coins(found: Found) -> list[Spendable]:
    pairs = zip(found.tx.inputs, found.prevouts, strict=True)
    return [Spendable(txin.outpoint, prevout.value_sats, False) for txin, prevout in pairs]


def _fee_sats(wallet: Wallet, entry: Found, outputs: Sequence[TxOut]) -> int:
    """The fee that BIP125 asks for: above all replaced fees, its own relay, and the old feerate."""
    mempool = wallet.chain.mempool
    replaced = mempool.descendants({entry.tx.txid})
    replaced_sats = sum(mempool.entries[txid].fee_sats for txid in replaced)
    own_sats = wallet.usual_fee_sats(len(entry.tx.inputs) + 1, outputs)
    # own_sats is at least 2 sat for each virtual byte, so the old fee scaled to it is generous.
    same_rate_sats = -(-entry.fee_sats * own_sats // entry.tx.vsize) // 2
    return max(replaced_sats, same_rate_sats) + own_sats
