"""The rules for a single transaction, in Bitcoin Core's words: consensus, then standardness."""

from collections.abc import Sequence

from btcpay.bitcoin.tx import NO_TXID, NO_VOUT, Tx
from btcpay.sandbox.errors import Rejected
from btcpay.sandbox.node.ledger import Coin
from btcpay.sandbox.node.script import OP_RETURN, kind, witness_version
from btcpay.values.money import MAX_MONEY_SATS

MAX_BLOCK_WEIGHT = 4_000_000
MAX_STANDARD_WEIGHT = 400_000
MIN_STANDARD_BYTES = 65  # a transaction of 64 bytes can pass for a merkle node (CVE-2017-12842)
MAX_SCRIPT_SIG_BYTES = 1650
MAX_OP_RETURN_BYTES = 83
COINBASE_MATURITY_BLOCKS = 100
LOCKTIME_IS_A_TIME = 500_000_000
MIN_RELAY_SATS_PER_VB = 1
DUST_SATS_PER_VB = 3  # Bitcoin Core, policy/policy.h: DUST_RELAY_TX_FEE
SPENDING_BYTES, WITNESS_SPENDING_BYTES = 148, 67  # an input, as GetDustThreshold counts it
MAX_SATS_PER_VB = 10_000  # sendrawtransaction's default guard: 0.10 BTC per 1,000 virtual bytes


def check_structure(tx: Tx) -> None:
    outpoints = [i.outpoint for i in tx.inputs]
    values_sats = [output.value_sats for output in tx.outputs]
    _require(bool(tx.inputs), "bad-txns-vin-empty")
    _require(bool(tx.outputs), "bad-txns-vout-empty")
    _require(4 * len(tx.stripped) <= MAX_BLOCK_WEIGHT, "bad-txns-oversize")
    _require(all(value < 1 << 63 for value in values_sats), "bad-txns-vout-negative")
    _require(all(value <= MAX_MONEY_SATS for value in values_sats), "bad-txns-vout-toolarge")
    _require(sum(values_sats) <= MAX_MONEY_SATS, "bad-txns-txouttotal-toolarge")
    _require(len(set(outpoints)) == len(outpoints), "bad-txns-inputs-duplicate")
    _require(not tx.is_coinbase, "coinbase")
    _require((NO_TXID, NO_VOUT) not in outpoints, "bad-txns-prevout-null")


def check_standard(tx: Tx) -> None:
    _require(tx.version in (1, 2), "version")
    _require(len(tx.stripped) >= MIN_STANDARD_BYTES, "tx-size-small")
    _require(tx.weight <= MAX_STANDARD_WEIGHT, "tx-size")
    _require(all(len(i.script_sig) <= MAX_SCRIPT_SIG_BYTES for i in tx.inputs), "scriptsig-size")
    _require(all(_is_standard(output.script) for output in tx.outputs), "scriptpubkey")
    returns = sum(output.script[:1] == bytes([OP_RETURN]) for output in tx.outputs)
    _require(returns <= 1, "multi-op-return")
    _require(all(out.value_sats >= least_sats(out.script) for out in tx.outputs), "dust")


def least_sats(script: bytes) -> int:
    """The least that is relayed to a script (GetDustThreshold); 0 for what is never spent."""
    if kind(script) == "op_return":
        return 0
    spending = SPENDING_BYTES if witness_version(script) is None else WITNESS_SPENDING_BYTES
    return (8 + 1 + len(script) + spending) * DUST_SATS_PER_VB


def check_final(tx: Tx, next_height: int, median_time: int) -> None:
    """BIP113 and BIP68 for the next block; a relative lock is refused even when it has passed."""
    now = median_time if tx.locktime >= LOCKTIME_IS_A_TIME else next_height
    unlocked = tx.locktime < now or all(i.sequence == 0xFFFFFFFF for i in tx.inputs)
    _require(tx.locktime == 0 or unlocked, "non-final")
    locked = any(i.sequence & 0x8000FFFF in range(1, 0x10000) for i in tx.inputs)
    _require(tx.version < 2 or not locked, "non-BIP68-final")


def check_coins(tx: Tx, coins: Sequence[Coin], next_height: int) -> int:
    """The fee in satoshis; refuses young coinbases and more going out than coming in."""
    for coin in coins:
        young = coin.is_coinbase and next_height - (coin.height or 0) < COINBASE_MATURITY_BLOCKS
        _require(not young, "bad-txns-premature-spend-of-coinbase")
    fee_sats = sum(c.output.value_sats for c in coins) - sum(o.value_sats for o in tx.outputs)
    _require(fee_sats >= 0, "bad-txns-in-belowout")
    return fee_sats


def check_fee(tx: Tx, fee_sats: int) -> None:
    """Enough to be relayed, and not so much that it must be a mistake."""
    _require(fee_sats >= tx.vsize * MIN_RELAY_SATS_PER_VB, "min relay fee not met")
    _require(fee_sats <= tx.vsize * MAX_SATS_PER_VB, "max-fee-exceeded")


def _is_standard(script: bytes) -> bool:
    name = kind(script)
    if name == "op_return":
        return len(script) <= MAX_OP_RETURN_BYTES
    return name not in ("unknown", "empty") or bool(witness_version(script))


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise Rejected(reason)
