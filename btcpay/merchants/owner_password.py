"""The password of the service's owner, which opens the pages of every merchant.

It is set by BLOCKTILL_OWNER_PASSWORD.
"""

import hashlib
import hmac
import unicodedata
from dataclasses import dataclass

from btcpay.values.ids import SECRET_CHARACTERS, random_base62
from storage.database import Database
from storage.queries import meta

# The hash takes 16 MiB of memory and some 50 ms on a desktop. Backups contain the hash. If it were
# faster to compute, somebody with a backup could guess a password that a person chose. An API key
# is random, so its hash can be fast.
SCRYPT_COST = 2**14
SCRYPT_BLOCK_SIZE = 8


@dataclass(frozen=True)
class OwnerPassword:
    """The hashes of the owner's password. Both are empty if the settings have no password.

    `sha256` is compared with the hash of what a visitor enters, and is not stored.
    `scrypt` is stored with each session that was opened with the password.
    """

    sha256: bytes
    scrypt: str

    @property
    def is_set(self) -> bool:
        return bool(self.sha256)

    def matches(self, text: str) -> bool:
        """True if the text is the password. The comparison takes the same time for any text."""
        return self.is_set and hmac.compare_digest(_sha256_of(text), self.sha256)


NO_PASSWORD = OwnerPassword(b"", "")


def owner_password(text: str, db: Database) -> OwnerPassword:
    """Returns the hashes of the password in the settings; NO_PASSWORD if it is "".

    The first call with a password stores a random salt in the database.
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
    """Returns the SHA-256 of a password, without blanks around it and in the form NFC.

    Keyboards differ in how they compose letters, and copying often adds blanks.
    """
    composed = unicodedata.normalize("NFC", text.strip())
    return hashlib.sha256(composed.encode("utf-8", "surrogateescape")).digest()
