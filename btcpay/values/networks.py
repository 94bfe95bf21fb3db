"""The differences between the Bitcoin networks: prefixes, explorers, price sources."""

import tomllib
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

SANDBOX_URL = "http://127.0.0.1:8001"
AUTO = "auto"  # stands for the peers that the network's seeds name

# Public tickers that need no key. Five operators in three jurisdictions, so that one outage,
# one block of addresses or one wrong number does not decide.
PUBLIC_TICKERS = (
    "https://api.coinbase.com/v2/prices/BTC-USD/spot#/data/amount",
    "https://api.kraken.com/0/public/Ticker?pair=XBTUSD#/result/XXBTZUSD/c/0",
    "https://www.bitstamp.net/api/v2/ticker/btcusd/#/last",
    "https://api.gemini.com/v1/pubticker/btcusd#/last",
    "https://api-pub.bitfinex.com/v2/ticker/tBTCUSD#/6",
)

# The same tickers in other currencies: most know some thirty, mempool.space six.
PUBLIC_CURRENCY_TICKERS = (
    "https://api.coinbase.com/v2/prices/BTC-{CURRENCY}/spot#/data/amount",
    "https://blockchain.info/ticker#/{CURRENCY}/last",
    "https://bitpay.com/rates/BTC/{CURRENCY}#/data/rate",
    "https://api.coingecko.com/api/v3/simple/price?ids=bitcoin&vs_currencies={currency}"
    "#/bitcoin/{currency}",
    "https://mempool.space/api/v1/prices#/{CURRENCY}",
)


class Known(NamedTuple):
    height: int
    hash: str


@dataclass(frozen=True)
class Network:
    """One Bitcoin network, as networks.toml describes it.

    `bech32_hrp`: human-readable part (BIP173); `p2pkh`, `p2sh`: base58check version bytes;
    `main_keys`: extended keys are xpub/ypub/zpub (BIP32, SLIP-132), else tpub/upub/vpub;
    `max_target_bits`: the easiest target that a proof's headers may claim, in compact form;
    `pow_limit_bits`: the easiest target of consensus; None on test networks, where work is cheap
    and targets are not checked; `tip_max_age`: the age of a tip at which explorers count as stuck;
    None where blocks have no rhythm; `gone_after`: an output that no look at the mempool has shown
    for so long is gone; `genesis_hash` tells explorers of the test networks apart, whose address
    prefixes are the same; `magic`: the first bytes of each message between nodes; `port`: theirs;
    `seeds`: DNS names of some nodes; `checkpoint`: a block that every believed chain has; None on
    regtest; `explorers`: Esplora roots; `price_sources`: URL#/json/pointer, `currency_sources` with
    the currency's place; `calls_per_hour`: asked of one explorer (public ones allow 700).
    """

    name: str
    bech32_hrp: str
    p2pkh: bytes
    p2sh: bytes
    main_keys: bool
    max_target_bits: int
    genesis_hash: str
    magic: bytes
    explorers: tuple[str, ...]
    price_sources: tuple[str, ...] = PUBLIC_TICKERS
    currency_sources: tuple[str, ...] = PUBLIC_CURRENCY_TICKERS
    calls_per_hour: int = 600
    pow_limit_bits: int | None = None
    tip_max_age: timedelta | None = None
    gone_after: timedelta = timedelta(hours=1)
    checkpoint: Known | None = None
    port: int = 0
    seeds: tuple[str, ...] = ()

    def stands_still(self, mined_at: datetime, now: datetime) -> bool:
        """True where a tip of that time is too old to be the newest block."""
        return self.tip_max_age is not None and now - mined_at > self.tip_max_age


def _read(name: str, value: Any) -> Any:
    """A value of networks.toml, as `Network` has it."""
    if name in ("p2pkh", "p2sh", "magic"):
        return bytes.fromhex(value)
    if name in ("tip_max_age", "gone_after"):
        return timedelta(hours=value)
    if name == "checkpoint":
        return Known(*value)
    return tuple(value) if isinstance(value, list) else value


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NETWORKS = {
    network: Network(network, **{name: _read(name, value) for name, value in values.items()})
    for network, values in _TABLE.items()
}
