"""The payer's wallet: the miner's rewards make it rich."""

from collections.abc import Mapping, Sequence

from btcpay.bitcoin.address import DUST_SATS
from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.mempool import COINBASE_MATURITY_BLOCKS
from btcpay.sandbox.node.script import address_of, script_of
from btcpay.sandbox.payer.coins import Spendable, choose, sign, total
from btcpay.sandbox.payer.key import Key

FEE_SATS_PER_VB = 2
OVERHEAD_VB = 11  # version, counts, locktime, marker and flag
INPUT_VB, OUTPUT_VB = 91, 9  # a P2SH-P2WPKH input; an output beside its script
CHANGE_FLOOR_SATS = 540  # P2SH's dust limit; a smaller rest goes to the miner
MOST_DUST_SATS = 354  # the limit of the longest witness program, 40 bytes: (51 + 67) * 3


class Wallet:
    """One key's P2SH-P2WPKH coins. Raises BadRequest for what cannot be paid."""

    def __init__(self, key: Key, chain: Chain):
        self._key, self.chain = key, chain
        self.script = key.script
        self.address = address_of(key.script)

    def coins(self) -> list[Spendable]:
        """The mature unspent coins: confirmed ones first, and large ones before small."""
        with self.chain.lock:
            ledger, mempool = self.chain.ledger, self.chain.mempool
            oldest = ledger.height + 1 - COINBASE_MATURITY_BLOCKS
            coins = [
                Spendable(outpoint, coin.output.value_sats, False)
                for outpoint, coin in ledger.coins.items()
                if coin.output.script == self.script
                if not (coin.is_coinbase and coin.height > oldest)
            ] + [
                Spendable(Outpoint(txid, vout), output.value_sats, True)
                for txid, entry in mempool.entries.items()
                for vout, output in enumerate(entry.tx.outputs)
                if output.script == self.script
            ]
            unspent = [coin for coin in coins if coin.outpoint not in mempool.spenders]
        return sorted(unspent, key=lambda coin: (coin.waiting, -coin.value_sats))

    def pay(self, address: str, sats: int, now: int) -> str:
        """Sends a payment; its txid."""
        with self.chain.lock:
            return self.chain.accept(self.draft({address: sats}), now)

    def draft(self, sats: Mapping[str, int]) -> bytes:
        """A signed payment, raw, that is sent to nobody."""
        outputs = [_output(address, value_sats) for address, value_sats in sats.items()]
        needed_sats = sum(sats.values())
        coins = choose(self.coins(), needed_sats)
        while total(coins) < needed_sats + (fee := self.usual_fee_sats(len(coins), outputs)):
            coins = choose(self.coins(), needed_sats + fee)
        return self.build(coins, outputs, fee)

    def payments(self) -> list[str]:
        """The txids of the wallet's own waiting transactions, newest first."""
        with self.chain.lock:
            entries = self.chain.mempool.entries.items()
            return [txid for txid, entry in entries if self.owns(entry.prevouts)][::-1]

    def owns(self, prevouts: Sequence[TxOut]) -> bool:
        return all(prevout.script == self.script for prevout in prevouts)

    def build(self, coins: Sequence[Spendable], outputs: Sequence[TxOut], fee_sats: int) -> bytes:
        """The signed transaction, raw; the rest comes back as change unless it is dust."""
        change_sats = total(coins) - sum(output.value_sats for output in outputs) - fee_sats
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


def _output(address: str, amount_sats: int) -> TxOut:
    script = script_of(address)
    if amount_sats < (least := DUST_SATS.get(len(script), MOST_DUST_SATS)):
        raise BadRequest(f"Amount: nodes relay at least {least} satoshis to this address")
    return TxOut(amount_sats, script)
