"""Identifiers and secrets: base62 from the operating system's secure source."""

import hashlib
import hmac
import re
import secrets
import string

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
ID_CHARACTERS = 24  # 142 bits: never guessed, never twice
_IS_ID = re.compile(rf"[0-9A-Za-z]{{{ID_CHARACTERS}}}").fullmatch
SECRET_CHARACTERS = 43  # 62**43 > 2**256


def new_id(prefix: str) -> str:
    """A fresh identifier, such as `inv_` and 24 base62 characters."""
    return f"{prefix}_{random_base62(ID_CHARACTERS)}"


def derived_id(prefix: str, secret: str, text: str) -> str:
    """The identifier that belongs to a text; only the secret's holder can work it out.

    So a form makes one thing, however often it is sent.
    """
    return f"{prefix}_{derived_base62(secret, text, ID_CHARACTERS)}"


def derived_base62(secret: str, text: str, length: int = SECRET_CHARACTERS) -> str:
    """Such an identifier without a prefix, of `length` characters (at most 43)."""
    digest = hmac.digest(secret.encode(), text.encode(), "sha256")
    return _base62(int.from_bytes(digest, "big"), length)


def random_base62(length: int) -> str:
    """`length` characters, each uniform among the 62."""
    return _base62(secrets.randbelow(len(BASE62) ** length), length)


def _base62(number: int, length: int) -> str:
    """The last `length` digits of a number in base 62, the lowest first."""
    characters = ""
    for _ in range(length):
        number, place = divmod(number, len(BASE62))
        characters += BASE62[place]
    return characters


def sha256_of(secret: str) -> str:
    """The hash that is stored. No salt: 142 random bits cannot be guessed from a table."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def is_id(prefix: str, text: str) -> bool:
    """True if `new_id(prefix)` could have made the text; any other text needs no query."""
    return text.startswith(f"{prefix}_") and _IS_ID(text, len(prefix) + 1) is not None
