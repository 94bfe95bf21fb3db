"""The payer's wallet: pays, replaces and double-spends.

The rewards of the sandbox's blocks are paid to this wallet.
"""

from collections.abc import Mapping, Sequence

from btcpay.bitcoin.address import DUST_LIMITS_SATS
from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.ledger import ChainTx
from btcpay.sandbox.node.script import address_of, script_of
from btcpay.sandbox.payer.coins import Spendable, choose, sum_sats
from btcpay.sandbox.payer.key import Key
from btcpay.sandbox.payer.signing import sign

FEE_SATS_PER_VB = 2
OVERHEAD_VB = 11  # version, counts, locktime, marker and flag
INPUT_VB = 68  # a P2WPKH input
OUTPUT_VB = 9  # an output without its script
CHANGE_FLOOR_SATS = 294  # P2WPKH's dust limit; smaller change is left to the miner
# The dust limit of the longest witness program, 40 bytes: (51 + 67) * 3.
MOST_DUST_SATS = 354


class Wallet:
    """The wallet of one key, with its P2WPKH coins.

    The methods raise BadRequest if a payment is not possible.
    """

    def __init__(self, key: Key, chain: Chain):
        self._key = key
        self.chain = chain
        self.script = key.script
        self.address = address_of(key.script)

    def fresh_address(self) -> str:
        """Returns an address of a new key, which is discarded: coins paid to it are lost.

        For a customer's refund, the wallet's own address cannot be used, since each
        block pays its reward there.
        """
        return address_of(Key.new().script)

    def coins(self) -> list[Spendable]:
        """Returns the coins that can be spent.

        Confirmed coins come before unconfirmed ones, and large ones before small ones.
        """
        with self.chain.lock:
            tip_height = self.chain.ledger.height
            spenders = self.chain.mempool.spenders
            coins = []
            for outpoint, origin in self._outputs().items():
                output = origin.tx.outputs[outpoint.vout]
                is_own = output.script == self.script
                is_free = outpoint not in spenders
                if is_own and is_free and not origin.is_immature(tip_height):
                    is_waiting = origin.height is None
                    coins.append(Spendable(outpoint, output.value_sats, is_waiting))
        return sorted(coins, key=lambda coin: (coin.is_waiting, -coin.value_sats))

    def _outputs(self) -> dict[Outpoint, ChainTx]:
        """Returns all outputs of the best chain and the mempool that no block has spent."""
        outputs = dict(self.chain.ledger.coins)
        for txid, entry in self.chain.mempool.entries.items():
            for vout in range(len(entry.tx.outputs)):
                outputs[Outpoint(txid, vout)] = entry
        return outputs

    def pay(self, address: str, sats: int, now: int) -> str:
        """Sends a payment and returns its txid. `now` is in unix seconds."""
        with self.chain.lock:
            return self.chain.accept(self.draft({address: sats}), now)

    def draft(self, sats: Mapping[str, int]) -> bytes:
        """Returns a signed raw transaction without sending it.

        `sats` are the satoshis to pay, by address.
        """
        outputs = []
        for address, value_sats in sats.items():
            script = script_of(address)
            _refuse_dust(value_sats, script)
            outputs.append(TxOut(value_sats, script))
        paid_sats = sum(sats.values())
        coins = choose(self.coins(), paid_sats)
        fee_sats = self.usual_fee_sats(len(coins), outputs)
        # Each additional coin increases the fee.
        while sum_sats(coins) < paid_sats + fee_sats:
            coins = choose(self.coins(), paid_sats + fee_sats)
            fee_sats = self.usual_fee_sats(len(coins), outputs)
        return self.build(coins, outputs, fee_sats)

    def payments(self) -> list[str]:
        """Returns the txids of the wallet's unconfirmed transactions, newest first."""
        txids = []
        with self.chain.lock:
            for txid, entry in self.chain.mempool.entries.items():
                if self.owns(entry.prevouts):
                    txids.append(txid)
        txids.reverse()
        return txids

    def owns(self, prevouts: Sequence[TxOut]) -> bool:
        """True if all these outputs pay to the wallet."""
        return all(prevout.script == self.script for prevout in prevouts)

    def build(
        self,
        coins: Sequence[Spendable],
        outputs: Sequence[TxOut],
        fee_sats: int,
    ) -> bytes:
        """Returns the signed raw transaction.

        The change is an output to the wallet, unless it is dust. Raises BadRequest if
        nothing is left to pay after the fee.
        """
        paid_sats = sum(output.value_sats for output in outputs)
        change_sats = sum_sats(coins) - paid_sats - fee_sats
        if change_sats >= CHANGE_FLOOR_SATS:
            outputs = [*outputs, TxOut(change_sats, self.script)]
        if not outputs:
            raise BadRequest(f"a fee of {fee_sats} sat leaves nothing to pay")
        return sign(self._key, coins, outputs)

    def usual_fee_sats(self, input_count: int, outputs: Sequence[TxOut]) -> int:
        """Returns the fee of a transaction with this number of inputs and these outputs.

        The fee is 2 satoshis per virtual byte. The size includes a change output, and
        is rounded up.
        """
        inputs_vb = INPUT_VB * input_count
        outputs_vb = OUTPUT_VB + len(self.script)
        for output in outputs:
            outputs_vb += OUTPUT_VB + len(output.script)
        vsize = OVERHEAD_VB + inputs_vb + outputs_vb
        return vsize * FEE_SATS_PER_VB


def _refuse_dust(value_sats: int, script: bytes) -> None:
    """Raises BadRequest if the output is dust, which nodes do not relay."""
    dust_limit_sats = DUST_LIMITS_SATS.get(len(script), MOST_DUST_SATS)
    if value_sats < dust_limit_sats:
        raise BadRequest(
            f"Amount: nodes relay at least {dust_limit_sats} satoshis to this address"
        )


def replace(wallet: Wallet, now: int, txid: str = "", away: bool = False) -> str:
    """Replaces a payment by one with a higher fee (BIP125), and returns the new txid.

    `txid` is an unconfirmed payment of the wallet; "" means the newest one. If `away`
    is True, the payee gets nothing: the replacement pays the wallet itself. Raises
    BadRequest if there is no such payment, or if it cannot be replaced.
    """
    chain = wallet.chain
    with chain.lock:
        entry = _unconfirmed_payment(wallet, txid)
        outputs = []
        if not away:
            outputs = _outputs_to_others(wallet, entry)
        coins = _spent_coins(entry)
        fee_sats = _fee_sats(wallet, entry, outputs)
        paid_sats = sum(output.value_sats for output in outputs)
        missing_sats = paid_sats + fee_sats - sum_sats(coins)
        if missing_sats > 0:
            # A replacement may not add unconfirmed coins (BIP125, rule 2).
            confirmed = [coin for coin in wallet.coins() if not coin.is_waiting]
            coins += choose(confirmed, missing_sats)
        raw = wallet.build(coins, outputs, fee_sats)
        return chain.accept(raw, now)


def _unconfirmed_payment(wallet: Wallet, txid: str) -> ChainTx:
    """Returns an unconfirmed payment of the wallet; the newest one if `txid` is "".

    Raises BadRequest if there is no such payment.
    """
    payments = wallet.payments()
    if not payments:
        raise BadRequest("no payment of the sandbox wallet is waiting; press pay first")
    if txid and txid not in payments:
        raise BadRequest(f"{txid} is no waiting payment of the sandbox wallet")
    return wallet.chain.mempool.entries[txid or payments[0]]


def _outputs_to_others(wallet: Wallet, entry: ChainTx) -> list[TxOut]:
    return [output for output in entry.tx.outputs if output.script != wallet.script]


def double_spends(wallet: Wallet, depth: int) -> list[bytes]:
    """Returns raw double spends of the wallet's payments in the last `depth` blocks.

    A payment that spends an output of another transaction in these blocks needs none:
    it becomes invalid together with that transaction.
    """
    chain = wallet.chain
    with chain.lock:
        txs: list[Tx] = []
        for block_hash in chain.ledger.hashes[-depth:]:
            block = chain.ledger.blocks[block_hash]
            txs += block.txs[1:]
        txids = {tx.txid for tx in txs}
        raw_txs = []
        for tx in txs:
            entry = chain.find(tx.txid)
            if wallet.owns(entry.prevouts) and txids.isdisjoint(_parents(tx)):
                coins = _spent_coins(entry)
                fee_sats = wallet.usual_fee_sats(len(coins), [])
                raw_txs.append(wallet.build(coins, [], fee_sats))
        return raw_txs


def _parents(tx: Tx) -> list[str]:
    """Returns the txids of the transactions whose outputs `tx` spends."""
    return [txin.outpoint.txid for txin in tx.inputs]


def _spent_coins(entry: ChainTx) -> list[Spendable]:
    """Returns the coins that the transaction spends."""
    coins = []
    for txin, prevout in zip(entry.tx.inputs, entry.prevouts, strict=True):
        coins.append(Spendable(txin.outpoint, prevout.value_sats, False))
    return coins


def _fee_sats(wallet: Wallet, entry: ChainTx, outputs: Sequence[TxOut]) -> int:
    """Returns a sufficient fee for a replacement (BIP125).

    It exceeds the fees of all replaced transactions by enough to pay for its own relay.
    Its fee rate is not below that of the replaced payment.
    """
    mempool = wallet.chain.mempool
    replaced_sats = 0
    for txid in mempool.descendants({entry.tx.txid}):
        replaced_sats += mempool.entries[txid].fee_sats
    own_sats = wallet.usual_fee_sats(len(entry.tx.inputs) + 1, outputs)
    # `own_sats` is 2 sat per virtual byte, so half of it is at least the replacement's size.
    # -(-a // b) is a / b, rounded up.
    same_rate_sats = -(-entry.fee_sats * own_sats // entry.tx.vsize) // 2
    return max(replaced_sats, same_rate_sats) + own_sats
