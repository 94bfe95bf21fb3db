"""The payer's key: its public half, its scripts, its signatures, and the file that keeps it."""

import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from btcpay.bitcoin.address import p2pkh, p2sh, witness_script
from btcpay.bitcoin.secp256k1 import ORDER
from btcpay.bitcoin.wire import hash160, hash256
from btcpay.sandbox.payer import ecdsa


@dataclass(frozen=True)
class Key:
    """A private key, from 1 to the curve's order - 1."""

    secret: int

    @classmethod
    def new(cls) -> Self:
        return cls(1 + secrets.randbelow(ORDER - 1))

    @cached_property
    def public_key(self) -> bytes:
        return ecdsa.public_point(self.secret).format()

    @property
    def program_script(self) -> bytes:
        """The P2WPKH script inside the coins' P2SH script."""
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
    """The key in `path` (hex, mode 0600), made at the first call; a restart finds its coins."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(f"{Key.new().secret:064x}\n")
    return Key(int(path.read_text(), 16))
