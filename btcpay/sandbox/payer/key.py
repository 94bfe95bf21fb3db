"""The payer's key: its public half, its scripts, its signatures, and the file that keeps it."""

import os
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from btcpay.bitcoin.address import b58check_decode, b58check_encode, p2pkh, p2sh, witness_script
from btcpay.bitcoin.secp256k1 import ORDER
from btcpay.bitcoin.wire import hash160, hash256
from btcpay.sandbox.payer import ecdsa

WIF_VERSION, WIF_COMPRESSED = b"\xef", b"\x01"  # of the test networks


@dataclass(frozen=True)
class Key:
    """A private key, from 1 to the curve's order - 1."""

    secret: int

    @classmethod
    def new(cls) -> Self:
        return cls(1 + secrets.randbelow(ORDER - 1))

    @classmethod
    def from_wif(cls, text: str) -> Self:
        return cls(int.from_bytes(b58check_decode(text)[1:33], "big"))

    @property
    def wif(self) -> str:
        return b58check_encode(WIF_VERSION + self.secret.to_bytes(32, "big") + WIF_COMPRESSED)

    @cached_property
    def public_key(self) -> bytes:
        return ecdsa.public_point(self.secret).format()

    @property
    def program_script(self) -> bytes:
        """The P2WPKH script: what the coins' nested script holds."""
        return witness_script(0, hash160(self.public_key))

    @property
    def script(self) -> bytes:
        """The P2SH-P2WPKH script, to which the wallet's coins are paid."""
        return p2sh(hash160(self.program_script))

    @property
    def script_code(self) -> bytes:
        """The script code that signatures commit to for either script (BIP143)."""
        return p2pkh(hash160(self.public_key))

    def sign(self, preimage: bytes) -> bytes:
        return ecdsa.sign(self.secret, hash256(preimage))


def open_key(path: Path) -> Key:
    """The key in `path` (WIF, mode 0600), made at the first call; a restart finds its coins."""
    if path.exists():
        return Key.from_wif(path.read_text().strip())
    key = Key.new()
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key.wif + "\n")
    draft.rename(path)
    return key
