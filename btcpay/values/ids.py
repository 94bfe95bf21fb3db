"""Random identifiers and secrets in base62, and their hashes."""

import hashlib
import hmac
import re
import secrets
import string

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
ID_CHARACTERS = 24  # 142 bits, so that ids cannot be guessed and do not repeat
_IS_ID = re.compile(rf"[0-9A-Za-z]{{{ID_CHARACTERS}}}").fullmatch
SECRET_CHARACTERS = 43  # 62**43 > 2**256


def new_id(prefix: str) -> str:
    """Returns a new random identifier: the prefix, `_` and 24 base62 characters."""
    return f"{prefix}_{random_base62(ID_CHARACTERS)}"


def derived_id(prefix: str, secret: str, text: str) -> str:
    """Returns an identifier derived from the text with HMAC-SHA-256.

    The same text always gives the same identifier, so that a form that is sent twice
    creates only one row. Nobody can compute the identifier without the secret.
    """
    return f"{prefix}_{derived_base62(secret, text, ID_CHARACTERS)}"


def derived_base62(secret: str, text: str, length: int = SECRET_CHARACTERS) -> str:
    """Returns `length` base62 characters derived from the text, as in `derived_id`.

    `length` is at most 43: HMAC-SHA-256 gives no more.
    """
    digest = hmac.digest(secret.encode(), text.encode(), "sha256")
    return _base62(int.from_bytes(digest, "big"), length)


def random_base62(length: int) -> str:
    """Returns `length` random base62 characters, each uniformly distributed."""
    return _base62(secrets.randbelow(len(BASE62) ** length), length)


def _base62(number: int, length: int) -> str:
    """Returns the `length` lowest base62 digits of a number, the lowest first."""
    characters = ""
    for _ in range(length):
        number, digit = divmod(number, len(BASE62))
        characters += BASE62[digit]
    return characters


def sha256_of(secret: str) -> str:
    """Returns the SHA-256 of a secret in hex, which is stored instead of the secret.

    No salt is needed, because a secret has at least 142 random bits.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def is_id(prefix: str, text: str) -> bool:
    """True if the text has the form of `new_id(prefix)`.

    Callers refuse any other text without a database query.
    """
    return text.startswith(f"{prefix}_") and _IS_ID(text, len(prefix) + 1) is not None
