"""Signed transactions: by `bit`, a wallet that nobody here wrote, wherever it knows the form.

It pays to every form of address but taproot's, and spends P2PKH, P2SH-P2WPKH, and multisig by P2SH
and P2SH-P2WSH. A test that needs it skips on Python 3.14, where it cannot be installed.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pytest

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut, parse_tx
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.coins import Spendable
from btcpay.sandbox.payer.key import Key
from btcpay.sandbox.payer.signing import sign

NESTED = {"p2pkh": "np2wkh", "p2sh": "np2wsh"}  # as `bit` calls them


class Coin(NamedTuple):
    """An unspent output; `height` is -1 while its transaction waits."""

    outpoint: Outpoint
    output: TxOut
    height: int


def bit_key(secret: int | None = None) -> Any:
    """Testnet's, whose addresses regtest has; a new one unless told otherwise."""
    key = pytest.importorskip("bit").PrivateKeyTestnet
    return key() if secret is None else key.from_int(secret)


def bit_multisig(secrets: Sequence[int], public_keys: list[bytes]) -> list[Any]:
    """The signers, of whom all are needed; a script has the public keys in their order."""
    multisig = pytest.importorskip("bit").MultiSigTestnet
    return [multisig(bit_key(secret), public_keys, len(secrets)) for secret in secrets]


def spend_by_bit(
    signers: Sequence[Any],
    coins: Sequence[Coin],
    parts: Iterable[tuple[str, int]],
    **fee: Any,
) -> bytes:
    """Pays (address, satoshis) with all these coins, signed by each; the rest is change."""
    unspent = pytest.importorskip("bit.network.meta").Unspent
    (first, *others) = signers
    form = "p2sh" if others else "p2pkh"

    def told(coin: Coin) -> Any:
        (txid, vout) = coin.outpoint
        (sats, script) = coin.output
        named = form if script == script_of(first.address) else NESTED[form]
        return unspent(sats, 1, script.hex(), txid, vout, named)

    outputs = [(address, sats, "satoshi") for address, sats in parts]
    tx = first.create_transaction(
        outputs, unspents=[told(coin) for coin in coins], replace_by_fee=True, **fee
    )
    for signer in others:
        tx = signer.sign_transaction(tx, unspents=[told(coin) for coin in coins])
    return bytes.fromhex(tx)


def spend_p2wpkh(key: Key, coins: Sequence[Coin], outputs: Sequence[TxOut]) -> Tx:
    """By the sandbox's wallet, since `bit` signs none."""
    spent = [Spendable(c.outpoint, c.output.value_sats, c.height < 0) for c in coins]
    return parse_tx(sign(key, spent, outputs))
