"""Whether an input may spend its output: P2PKH, P2WPKH and P2SH-P2WPKH, signed with SIGHASH_ALL.

Nothing else is ever spendable here, though anything may be paid to: refusing what cannot be checked
keeps the chain one that Bitcoin Core would accept.
"""

from coincurve import PublicKey
from coincurve.ecdsa import cdata_to_der, der_to_cdata

from btcpay.bitcoin.tx import Tx, TxOut
from btcpay.bitcoin.wire import hash160
from btcpay.sandbox.errors import Rejected
from btcpay.sandbox.node.script import kind, p2pkh
from btcpay.sandbox.node.sighash import SIGHASH_ALL, legacy_sighash, witness_sighash


def verify_input(tx: Tx, index: int, prevout: TxOut) -> None:
    """Raises Rejected unless input `index` proves that it may spend `prevout`."""
    verifiers = {"p2pkh": _verify_p2pkh, "v0_p2wpkh": _verify_p2wpkh, "p2sh": _verify_nested}
    verify = verifiers.get(kind(prevout.script))
    if verify is None:
        raise _refused(f"the sandbox cannot check spends of {kind(prevout.script)} outputs")
    verify(tx, index, prevout)


def _verify_p2pkh(tx: Tx, index: int, prevout: TxOut) -> None:
    if tx.inputs[index].witness:
        raise _refused("Witness provided for non-witness script")
    signature, key = _two_pushes(tx.inputs[index].script_sig)
    digest = legacy_sighash(tx, index, prevout.script)
    _check_key(key, prevout.script[3:23], compressed_only=False)
    _check_signature(signature, key, digest)


def _verify_p2wpkh(tx: Tx, index: int, prevout: TxOut) -> None:
    if tx.inputs[index].script_sig:
        raise _refused("Witness requires empty scriptSig")
    _verify_witness(tx, index, prevout.script[2:], prevout.value_sats)


def _verify_nested(tx: Tx, index: int, prevout: TxOut) -> None:
    """BIP141, P2WPKH nested in BIP16 P2SH: the scriptSig is one push of the witness program."""
    script_sig = tx.inputs[index].script_sig
    program = script_sig[1:]
    if hash160(program) != prevout.script[2:22]:
        raise _refused(
            "Script evaluated without error but finished with a false/empty top stack element"
        )
    if script_sig[:1] != b"\x16" or kind(program) != "v0_p2wpkh":
        raise _refused("the sandbox checks no other P2SH script than P2WPKH")
    _verify_witness(tx, index, program[2:], prevout.value_sats)


def _verify_witness(tx: Tx, index: int, key_hash: bytes, value_sats: int) -> None:
    witness = tx.inputs[index].witness
    if len(witness) != 2:
        raise _refused("Witness program hash mismatch")
    signature, key = witness
    digest = witness_sighash(tx, index, p2pkh(key_hash), value_sats)
    _check_key(key, key_hash, compressed_only=True)
    _check_signature(signature, key, digest)


def _two_pushes(script_sig: bytes) -> tuple[bytes, bytes]:
    """Signature and key of a P2PKH scriptSig: exactly two direct pushes."""
    first = script_sig[0] if script_sig else 0
    signature, rest = script_sig[1 : 1 + first], script_sig[1 + first :]
    if not 1 <= first <= 75 or not rest or rest[0] > 75 or len(rest) != 1 + rest[0]:
        raise _refused("Operation not valid with the current stack size")
    return signature, rest[1:]


def _check_key(key: bytes, key_hash: bytes, compressed_only: bool) -> None:
    if hash160(key) != key_hash:
        raise _refused("Script failed an OP_EQUALVERIFY operation")
    compressed = len(key) == 33 and key[0] in (2, 3)
    if not compressed and (compressed_only or len(key) != 65 or key[0] != 4):
        raise _refused("Public key is neither compressed or uncompressed")


def _check_signature(signature: bytes, key: bytes, digest: bytes) -> None:
    """Strict DER (BIP66), low S (BIP146: libsecp256k1 verifies no other), SIGHASH_ALL."""
    if not signature or signature[-1] != SIGHASH_ALL:
        raise _refused("the sandbox checks no other signature than SIGHASH_ALL")
    der = signature[:-1]
    try:
        canonical = cdata_to_der(der_to_cdata(der)) == der
        valid = PublicKey(key).verify(der, digest, hasher=None)
    except ValueError:
        canonical = valid = False
    if not canonical:
        raise _refused("Non-canonical DER signature")
    if not valid:
        raise _refused("Signature must be zero for failed CHECK(MULTI)SIG operation")


def _refused(why: str) -> Rejected:
    return Rejected(f"mandatory-script-verify-flag-failed ({why})")
