"""Identifiers and secrets: base62 from the operating system's secure source."""

import re
import secrets
import string

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
ID_CHARACTERS = 24  # 142 bits: never guessed, never twice
SECRET_CHARACTERS = 43  # 62**43 > 2**256


def new_id(prefix: str) -> str:
    """A fresh identifier, such as `inv_` and 24 base62 characters."""
    return id_of(prefix, secrets.token_bytes(32))


def random_base62(length: int) -> str:
    """`length` characters, each uniform among the 62."""
    return "".join(secrets.choice(BASE62) for _ in range(length))


def id_of(prefix: str, digest: bytes) -> str:
    """The identifier that this digest of 256 bits stands for: the same for the same."""
    number, characters = int.from_bytes(digest, "big"), ""
    for _ in range(ID_CHARACTERS):
        number, place = divmod(number, len(BASE62))
        characters += BASE62[place]
    return f"{prefix}_{characters}"


def is_id(prefix: str, text: str) -> bool:
    """Whether the text could have come from `new_id(prefix)`; nothing else is looked up."""
    return re.fullmatch(rf"{prefix}_[0-9A-Za-z]{{{ID_CHARACTERS}}}", text) is not None
