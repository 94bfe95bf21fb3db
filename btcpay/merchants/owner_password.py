"""The owner's password, BLOCKTILL_OWNER_PASSWORD, which opens every shop of a service."""

import hashlib
import hmac
import unicodedata
from dataclasses import dataclass

from btcpay.values.ids import SECRET_CHARACTERS, random_base62
from storage.database import Database
from storage.queries import meta

# 16 MiB and some 50 ms on a desktop. A backup contains this hash, and a password that a
# person has chosen can be guessed; an API key cannot.
SCRYPT_COST = 2**14
SCRYPT_BLOCK_SIZE = 8


@dataclass(frozen=True)
class OwnerPassword:
    """The hashes of the password. Both are empty if the settings have no password.

    `sha256` is compared with what a visitor types, and is stored nowhere. `scrypt` is
    stored with each session that the password opens.
    """

    sha256: bytes
    scrypt: str

    @property
    def is_set(self) -> bool:
        return bool(self.sha256)

    def matches(self, typed: str) -> bool:
        """True if a visitor typed the password. The time does not depend on the text."""
        return self.is_set and hmac.compare_digest(_sha256_of(typed), self.sha256)


NO_PASSWORD = OwnerPassword(b"", "")


def owner_password(text: str, db: Database) -> OwnerPassword:
    """Returns the hashes of the password in the settings; NO_PASSWORD if it is "".

    The salt of the database is made with the first password.
    """
    if not text:
        return NO_PASSWORD
    salt = meta.keep(db, meta.Key.PASSWORD_SALT, random_base62(SECRET_CHARACTERS))
    sha256 = _sha256_of(text)
    scrypt = hashlib.scrypt(
        sha256,
        salt=salt.encode(),
        n=SCRYPT_COST,
        r=SCRYPT_BLOCK_SIZE,
        p=1,
    )
    return OwnerPassword(sha256, scrypt.hex())


def _sha256_of(text: str) -> bytes:
    """Returns the SHA-256 of a password.

    Keyboards differ in how they compose letters (NFC), and copying adds blanks around a
    text. The settings have none there.
    """
    composed = unicodedata.normalize("NFC", text.strip())
    return hashlib.sha256(composed.encode("utf-8", "surrogateescape")).digest()
