"""The names that wallets give to fields of their JSON files."""

from collections.abc import Mapping
from typing import Any

Tree = Any
Object = Mapping[str, Any]
JsonPath = tuple[str, ...]  # the names that lead to a value
PATHS = frozenset(
    {
        "deriv", "derivation", "derivationpath", "path", "bip32path", "accountkeypath", "keypath",
        "full_path", "hd_path", "freshaddresspath",
    }
)  # fmt: skip
FINGERPRINTS = frozenset(
    {
        "xfp", "fingerprint", "rootfingerprint", "masterfingerprint", "root_fingerprint",
        "master_fingerprint", "mfp",
    }
)  # fmt: skip


def field_of(node: Object, names: frozenset[str]) -> str:
    """Returns the text of the first field that has one of these names; "" if none has.

    `names` are in lower case. Upper and lower case of the object's names do not matter.
    """
    for name, value in node.items():
        if name.lower() in names and isinstance(value, str):
            return value
    return ""
