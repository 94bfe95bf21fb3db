"""Whether a transaction enters the mempool, and which ones it replaces there (BIP125)."""

from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint, Tx
from btcpay.sandbox.errors import Rejected
from btcpay.sandbox.node import rules
from btcpay.sandbox.node.ledger import Coin, Ledger
from btcpay.sandbox.node.mempool import Entry, Mempool

MAX_CHAIN_TXS = 25  # Bitcoin Core's limit of waiting ancestors, and of waiting descendants
INCREMENTAL_SATS_PER_VB = 1  # BIP125 rule 4


class Acceptance(NamedTuple):
    entry: Entry
    replaced: set[str]


def judge(ledger: Ledger, mempool: Mempool, tx: Tx) -> Acceptance:
    """Changes nothing, and checks no signatures: only the payer's wallet sends. Raises Rejected."""
    if tx.txid in ledger.confirmed:
        raise Rejected("Transaction outputs already in utxo set")
    next_height = ledger.height + 1
    rules.check_structure(tx)
    rules.check_standard(tx)
    rules.check_final(tx, next_height, ledger.median_time_past(ledger.tip.hash))
    coins = [_coin(ledger, mempool, i.outpoint) for i in tx.inputs]
    fee_sats = rules.check_coins(tx, coins, next_height)
    rules.check_fee(tx, fee_sats)
    replaced = _replaced(mempool, tx, fee_sats)
    _check_chain_length(mempool, tx, replaced)
    return Acceptance(Entry(tx, tuple(coin.output for coin in coins), fee_sats), replaced)


def apply(mempool: Mempool, accepted: Acceptance) -> None:
    mempool.remove(accepted.replaced)
    mempool.add(accepted.entry)


def _coin(ledger: Ledger, mempool: Mempool, outpoint: Outpoint) -> Coin:
    """A waiting transaction may already spend it."""
    output = mempool.output(outpoint)
    coin = ledger.coins.get(outpoint) if output is None else Coin(output, None, False)
    if coin is None:
        raise Rejected("bad-txns-inputs-missingorspent")
    return coin


def _replaced(mempool: Mempool, tx: Tx, fee_sats: int) -> set[str]:
    """What `tx` replaces by BIP125's rules 1 to 4; empty without conflict. Raises Rejected."""
    conflicts = mempool.conflicts(tx)
    if not conflicts:
        return set()
    ancestors = mempool.ancestors(tx)
    if ancestors & conflicts:
        raise Rejected("bad-txns-spends-conflicting-tx")
    if not all(_replaceable(mempool, txid) for txid in conflicts):
        raise Rejected("txn-mempool-conflict")
    known = {i.outpoint.txid for txid in conflicts for i in mempool.entries[txid].tx.inputs}
    if any(i.outpoint.txid in mempool.entries.keys() - known for i in tx.inputs):
        raise Rejected("replacement-adds-unconfirmed")
    replaced = mempool.descendants(conflicts)
    _check_replacement_fee(mempool, tx, fee_sats, conflicts, replaced)
    return replaced


def _replaceable(mempool: Mempool, txid: str) -> bool:
    """Rule 1: it, or a waiting ancestor of it, signals."""
    family = mempool.ancestors(mempool.entries[txid].tx) | {txid}
    return any(mempool.entries[member].tx.signals_replacement for member in family)


def _check_replacement_fee(
    mempool: Mempool, tx: Tx, fee_sats: int, conflicts: set[str], replaced: set[str]
) -> None:
    """Rules 3 and 4, and a higher feerate than each transaction that it conflicts with directly."""
    for entry in (mempool.entries[txid] for txid in conflicts):
        if fee_sats * entry.tx.vsize <= entry.fee_sats * tx.vsize:
            raise Rejected("insufficient fee, rejecting replacement: its feerate is not higher")
    floor_sats = sum(mempool.entries[txid].fee_sats for txid in replaced)
    if fee_sats < floor_sats + tx.vsize * INCREMENTAL_SATS_PER_VB:
        against = f"{floor_sats} sat replaced and {tx.vsize} sat for its own relay"
        raise Rejected(f"insufficient fee, rejecting replacement: {fee_sats} sat against {against}")


def _check_chain_length(mempool: Mempool, tx: Tx, replaced: set[str]) -> None:
    ancestors = mempool.ancestors(tx)
    families = (mempool.descendants({ancestor}) - replaced for ancestor in ancestors)
    if len(ancestors) >= MAX_CHAIN_TXS or any(len(f) >= MAX_CHAIN_TXS for f in families):
        raise Rejected("too-long-mempool-chain")
