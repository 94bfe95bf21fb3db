"""The version bytes of extended public keys (SLIP-132)."""

from typing import NamedTuple

from btcpay.bitcoin.base58 import b58check_encode


class KeyVersion(NamedTuple):
    """The meaning of an extended public key's version bytes.

    `is_main` is True for mainnet. `script_type` is None for xpub and tpub, which do not
    define one.
    """

    is_main: bool
    script_type: str | None
    prefix: str

    @property
    def is_for_multisig(self) -> bool:
        """True if the key belongs to a multisig account (Ypub, Zpub, Upub, Vpub)."""
        return self.prefix[0].isupper()


VERSIONS = {
    bytes.fromhex("0488b21e"): KeyVersion(True, None, "xpub"),
    bytes.fromhex("049d7cb2"): KeyVersion(True, "p2sh-p2wpkh", "ypub"),
    bytes.fromhex("04b24746"): KeyVersion(True, "p2wpkh", "zpub"),
    bytes.fromhex("0295b43f"): KeyVersion(True, "p2sh-p2wsh", "Ypub"),
    bytes.fromhex("02aa7ed3"): KeyVersion(True, "p2wsh", "Zpub"),
    bytes.fromhex("043587cf"): KeyVersion(False, None, "tpub"),
    bytes.fromhex("044a5262"): KeyVersion(False, "p2sh-p2wpkh", "upub"),
    bytes.fromhex("045f1cf6"): KeyVersion(False, "p2wpkh", "vpub"),
    bytes.fromhex("024289ef"): KeyVersion(False, "p2sh-p2wsh", "Upub"),
    bytes.fromhex("02575483"): KeyVersion(False, "p2wsh", "Vpub"),
}
# The version bytes that are valid in descriptors (BIP380).
_XPUB = bytes.fromhex("0488b21e")
_TPUB = bytes.fromhex("043587cf")


def as_xpub(payload: bytes, is_main: bool) -> str:
    """Returns the key as an xpub, or as a tpub if it is for a test network.

    `payload` has the 78 bytes of the key, with any version bytes.
    """
    version = _TPUB
    if is_main:
        version = _XPUB
    return b58check_encode(version + payload[4:])
