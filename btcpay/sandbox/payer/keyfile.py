"""The payer's key, kept in the state directory so that a restart finds its coins again."""

import os
from pathlib import Path

from btcpay.sandbox.payer.key import Key


def open_key(path: Path) -> Key:
    """The key in `path` (WIF, mode 0600), made at the first call."""
    if path.exists():
        return Key.from_wif(path.read_text().strip())
    key = Key.new()
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key.wif + "\n")
    draft.rename(path)
    return key
