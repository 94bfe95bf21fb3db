"""The payer's wallet: it pays, replaces and takes back. The miner's rewards make it rich."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from btcpay.bitcoin.address import DUST_LIMITS_SATS
from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.bitcoin.wire import hash256, ser_string, ser_uint32
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.ledger import Found
from btcpay.sandbox.node.script import address_of, script_of
from btcpay.sandbox.payer.key import Key

FEE_SATS_PER_VB = 2
OVERHEAD_VB = 11  # version, counts, locktime, marker and flag
# a P2WPKH input; an output beside its script
INPUT_VB = 68
OUTPUT_VB = 9
CHANGE_FLOOR_SATS = 294  # P2WPKH's dust limit; a smaller rest goes to the miner
MOST_DUST_SATS = (
    354  # the limit of the longest witness program, 40 bytes: (51 + 67) * 3
)
RBF_SEQUENCE = 0xFFFFFFFD  # opts in to replacement (BIP125)
SIGHASH_ALL = 1


class Spendable(NamedTuple):
    """A coin of the wallet; `waiting` when its transaction is not yet in a block."""

    outpoint: Outpoint
    value_sats: int
    waiting: bool


class Wallet:
    """One key's P2WPKH coins. Raises BadRequest for a payment that cannot be made."""

    def __init__(self, key: Key, chain: Chain):
        self._key = key
        self.chain = chain
        self.script = key.script
        self.address = address_of(key.script)

    def fresh_address(self) -> str:
        """An address to which nothing was paid before, as wallets give one; no coin there is spent.

        The wallet's own address gets each block's reward.
        """
        return address_of(Key.new().script)

    def coins(self) -> list[Spendable]:
        """The mature unspent coins: confirmed ones first, and large ones before small."""
        with self.chain.lock:
            ledger = self.chain.ledger
            mempool = self.chain.mempool
            made = dict(ledger.coins)
            for txid, entry in mempool.entries.items():
                made |= {
                    Outpoint(txid, vout): entry for vout in range(len(entry.tx.outputs))
                }
            spenders = mempool.spenders
            coins = [
                Spendable(outpoint, output.value_sats, found.height is None)
                for outpoint, found in made.items()
                if (output := found.tx.outputs[outpoint.vout]).script == self.script
                if not found.is_immature(ledger.height) and outpoint not in spenders
            ]
        return sorted(coins, key=lambda coin: (coin.waiting, -coin.value_sats))

    def pay(self, address: str, sats: int, now: int) -> str:
        """Sends a payment; its txid."""
        with self.chain.lock:
            return self.chain.accept(self.draft({address: sats}), now)

    def draft(self, sats: Mapping[str, int]) -> bytes:
        """A signed payment, raw, that is sent to nobody."""
        outputs = [
            TxOut(value_sats, script_of(address))
            for address, value_sats in sats.items()
        ]
        for value_sats, script in outputs:
            if value_sats < (
                least := DUST_LIMITS_SATS.get(len(script), MOST_DUST_SATS)
            ):
                raise BadRequest(
                    f"Amount: nodes relay at least {least} satoshis to this address"
                )
        needed_sats = sum(sats.values())
        coins = choose(self.coins(), needed_sats)
        while total(coins) < needed_sats + (
            fee := self.usual_fee_sats(len(coins), outputs)
        ):
            coins = choose(self.coins(), needed_sats + fee)
        return self.build(coins, outputs, fee)

    def payments(self) -> list[str]:
        """The txids of the wallet's own waiting transactions, newest first."""
        with self.chain.lock:
            entries = self.chain.mempool.entries.items()
            return [txid for txid, entry in entries if self.owns(entry.prevouts)][::-1]

    def owns(self, prevouts: Sequence[TxOut]) -> bool:
        return all(prevout.script == self.script for prevout in prevouts)

    def build(
        self, coins: Sequence[Spendable], outputs: Sequence[TxOut], fee_sats: int
    ) -> bytes:
        """The signed transaction, raw; the rest comes back as change unless it is dust."""
        change_sats = (
            total(coins) - sum(output.value_sats for output in outputs) - fee_sats
        )
        if change_sats >= CHANGE_FLOOR_SATS:
            outputs = [*outputs, TxOut(change_sats, self.script)]
        if not outputs:
            raise BadRequest(f"a fee of {fee_sats} sat leaves nothing to pay")
        return sign(self._key, coins, outputs)

    def usual_fee_sats(self, input_count: int, outputs: Sequence[TxOut]) -> int:
        """2 sat for each virtual byte of a transaction with these outputs and change, or more."""
        scripts = [output.script for output in outputs] + [self.script]
        outputs_vb = sum(OUTPUT_VB + len(script) for script in scripts)
        return (OVERHEAD_VB + INPUT_VB * input_count + outputs_vb) * FEE_SATS_PER_VB


def choose(coins: Iterable[Spendable], needed_sats: int) -> list[Spendable]:
    """The first coins that suffice. Raises BadRequest when all of them do not."""
    chosen: list[Spendable] = []
    for coin in coins:
        chosen.append(coin)
        if total(chosen) >= needed_sats:
            return chosen
    has = f"has {total(chosen)} sat to spend, not {needed_sats}"
    raise BadRequest(f"the sandbox wallet {has}; mine some blocks")


def total(coins: Iterable[Spendable]) -> int:
    return sum(coin.value_sats for coin in coins)


def sign(key: Key, coins: Sequence[Spendable], outputs: Sequence[TxOut]) -> bytes:
    """The signed transaction, raw."""
    inputs = [TxIn(c.outpoint, b"", RBF_SEQUENCE) for c in coins]
    unsigned = Tx(2, tuple(inputs), tuple(outputs), 0)
    for index, coin in enumerate(coins):
        preimage = witness_preimage(unsigned, index, key.script_code, coin.value_sats)
        witness = (key.sign(preimage) + bytes([SIGHASH_ALL]), key.public_key)
        inputs[index] = inputs[index]._replace(witness=witness)
    return dataclasses.replace(unsigned, inputs=tuple(inputs)).raw


def witness_preimage(tx: Tx, index: int, script_code: bytes, value_sats: int) -> bytes:
    """The bytes that are signed for input `index`, whose coin has `value_sats` (BIP143)."""
    spent = tx.inputs[index]
    outpoints = hash256(b"".join(i.outpoint.raw for i in tx.inputs))
    sequences = hash256(b"".join(ser_uint32(i.sequence) for i in tx.inputs))
    own = (
        spent.outpoint.raw + ser_string(script_code) + value_sats.to_bytes(8, "little")
    )
    outputs = hash256(b"".join(output.raw for output in tx.outputs))
    parts = (outpoints, sequences, own, ser_uint32(spent.sequence), outputs)
    return (
        ser_uint32(tx.version)
        + b"".join(parts)
        + ser_uint32(tx.locktime)
        + ser_uint32(SIGHASH_ALL)
    )


def replace(wallet: Wallet, now: int, txid: str = "", away: bool = False) -> str:
    """Pays the newest payment or `txid` anew, or `away` to the wallet (BIP125); the new txid.

    Raises BadRequest when no such payment waits, or it cannot be replaced.
    """
    with wallet.chain.lock:
        if not (own := wallet.payments()):
            raise BadRequest(
                "no payment of the sandbox wallet is waiting; press pay first"
            )
        if txid and txid not in own:
            raise BadRequest(f"{txid} is no waiting payment of the sandbox wallet")
        entry = wallet.chain.mempool.entries[txid or own[0]]
        coins = _spent_coins(entry)
        outputs = (
            [] if away else [o for o in entry.tx.outputs if o.script != wallet.script]
        )
        fee_sats = _fee_sats(wallet, entry, outputs)
        missing_sats = sum(o.value_sats for o in outputs) + fee_sats - total(coins)
        if (
            missing_sats > 0
        ):  # confirmed coins: a replacement may add no waiting ones (rule 2)
            coins += choose(
                [coin for coin in wallet.coins() if not coin.waiting], missing_sats
            )
        return wallet.chain.accept(wallet.build(coins, outputs, fee_sats), now)


def double_spends(wallet: Wallet, depth: int) -> list[bytes]:
    """Raw transactions that take back the wallet's payments of the last `depth` blocks.

    A payment with coins made in these blocks needs none: it falls with the one before it.
    """
    with wallet.chain.lock:
        ledger = wallet.chain.ledger
        txs = [
            tx for lost in ledger.hashes[-depth:] for tx in ledger.blocks[lost].txs[1:]
        ]
        made = {tx.txid for tx in txs}
        first = [tx for tx in txs if not made & {i.outpoint.txid for i in tx.inputs}]
        found = [wallet.chain.find(tx.txid) for tx in first]
        spent = [_spent_coins(f) for f in found if wallet.owns(f.prevouts)]
        return [wallet.build(c, [], wallet.usual_fee_sats(len(c), [])) for c in spent]


def _spent_coins(found: Found) -> list[Spendable]:
    pairs = zip(found.tx.inputs, found.prevouts, strict=True)
    return [
        Spendable(txin.outpoint, prevout.value_sats, False) for txin, prevout in pairs
    ]


def _fee_sats(wallet: Wallet, entry: Found, outputs: Sequence[TxOut]) -> int:
    """The fee that BIP125 asks for: above all replaced fees, its own relay, and the old feerate."""
    mempool = wallet.chain.mempool
    replaced = mempool.descendants({entry.tx.txid})
    replaced_sats = sum(mempool.entries[txid].fee_sats for txid in replaced)
    own_sats = wallet.usual_fee_sats(len(entry.tx.inputs) + 1, outputs)
    # own_sats is at least 2 sat for each virtual byte, so the old fee scaled to it is generous.
    same_rate_sats = -(-entry.fee_sats * own_sats // entry.tx.vsize) // 2
    return max(replaced_sats, same_rate_sats) + own_sats
