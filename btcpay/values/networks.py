"""The Bitcoin networks and their parameters, which are read from networks.toml."""

import tomllib
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

SANDBOX_URL = "http://127.0.0.1:8001"
# The value of BLOCKTILL_PEERS that means: use peers that the network's DNS seeds return.
AUTO = "auto"


class BlockId(NamedTuple):
    """A block's height, and its hash in reversed hex."""

    height: int
    hash: str


@dataclass(frozen=True)
class Network:
    """One Bitcoin network. networks.toml explains its values."""

    name: str
    bech32_hrp: str
    p2pkh: bytes
    p2sh: bytes
    main_keys: bool
    max_target_bits: int
    genesis_hash: str
    magic: bytes
    explorers: tuple[str, ...]
    price_sources: tuple[str, ...]
    currency_sources: tuple[str, ...]
    calls_per_hour: int
    gone_after: timedelta
    pow_limit_bits: int | None = None
    tip_max_age: timedelta | None = None
    checkpoint: BlockId | None = None
    port: int = 0
    seeds: tuple[str, ...] = ()

    def stands_still(self, mined_at: datetime, now: datetime) -> bool:
        """True if a tip mined at `mined_at` is so old that newer blocks must exist.

        False on a network without `tip_max_age`.
        """
        return self.tip_max_age is not None and now - mined_at > self.tip_max_age


def _value_of(name: str, value: Any) -> Any:
    """Returns a value of networks.toml in the type that the field of `Network` has.

    `name` is the name of the field, which is also the key in the file.
    """
    if name in ("p2pkh", "p2sh", "magic"):
        return bytes.fromhex(value)
    if name in ("tip_max_age", "gone_after"):
        return timedelta(hours=value)
    if name == "checkpoint":
        return BlockId(*value)
    if isinstance(value, list):
        return tuple(value)
    return value


_FILE = Path(__file__).with_suffix(".toml")
_TABLES = tomllib.loads(_FILE.read_text(encoding="utf-8"))
_USUAL = _TABLES.pop("usual")


def _network(name: str, table: dict[str, Any]) -> Network:
    """Returns the network of a table of networks.toml; `usual` has its other values."""
    values = {}
    for key, value in (_USUAL | table).items():
        values[key] = _value_of(key, value)
    return Network(name, **values)


NETWORKS = {name: _network(name, table) for name, table in _TABLES.items()}
