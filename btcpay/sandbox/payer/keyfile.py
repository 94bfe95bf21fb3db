"""The payer's key, kept in the state directory so that a restart finds its coins again."""

import os
from pathlib import Path

from bit import PrivateKeyTestnet


def open_key(path: Path) -> PrivateKeyTestnet:
    """The key in `path` (WIF, mode 0600), made at the first call."""
    if path.exists():
        return PrivateKeyTestnet(path.read_text().strip())
    key = PrivateKeyTestnet()
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key.to_wif() + "\n")
    draft.rename(path)
    return key
