"""The differences between the Bitcoin networks: prefixes, explorers, price sources."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

SANDBOX_PORT = 8001
SANDBOX_URL = f"http://127.0.0.1:{SANDBOX_PORT}"

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


AUTO = "auto"  # stands for the peers that the network's seeds name


@dataclass(frozen=True)
class Network:
    """One Bitcoin network.

    `bech32_hrp`: human-readable part (BIP173); `p2pkh`, `p2sh`: base58check version bytes;
    `main_keys`: extended keys are xpub/ypub/zpub (BIP32, SLIP-132), else tpub/upub/vpub;
    `max_target_bits`: the easiest target that a proof's headers may claim, in compact form;
    `pow_limit_bits`: the easiest target of consensus; None on test networks, where work is cheap
    and targets are not checked; `tip_max_age`: the age of a tip at which explorers count as stuck;
    None where blocks have no rhythm; `gone_after`: an output that no look at the mempool has shown
    for so long is gone; `genesis_hash` tells explorers of the test networks apart, whose address
    prefixes are the same; `magic`: the first bytes of each message between nodes; `port`: theirs;
    `seeds`: DNS names of some nodes (Bitcoin Core, kernel/chainparams.cpp has all four);
    `checkpoint`: a block that every believed chain has; None on regtest. Bitcoin Core v31.0 assumes
    it to be valid (the same file, defaultAssumeValid, pull request 34677); `explorers`: Esplora
    roots; `price_sources`: URL#/json/pointer, `currency_sources` with the currency's place;
    `calls_per_hour`: asked of one explorer (public ones allow an address 700).
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


# p2pkh, p2sh, main_keys: every test network has the same.
_OF_TESTS = (b"\x6f", b"\xc4", False)

_ALL = (
    Network(
        "mainnet",
        "bc",
        b"\x00",
        b"\x05",
        True,
        # A quarter of the difficulty of November 2025 (1.52e14, bits 0x1701d936): a chain of
        # less work is not the one that merchants mean, and costs a forger this much.
        0x170764D8,
        "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
        bytes.fromhex("f9beb4d9"),
        ("https://blockstream.info/api", "https://mempool.space/api"),
        pow_limit_bits=0x1D00FFFF,  # Bitcoin Core, kernel/chainparams.cpp
        # Two hours without a block happen once in 160,000 blocks (exp(-12)): every three years.
        tip_max_age=timedelta(hours=2),
        checkpoint=Known(
            938_343, "00000000000000000000ccebd6d74d9194d8dcdc1d177c478e094bfad51ba5ac"
        ),
        port=8333,
        seeds=(
            "seed.bitcoin.sipa.be",
            "dnsseed.bluematt.me",
            "seed.bitcoin.jonasschnelli.ch",
            "seed.btc.petertodd.net",
            "seed.bitcoin.sprovoost.nl",
            "dnsseed.emzy.de",
            "seed.bitcoin.wiz.biz",
            "seed.mainnet.achownodes.xyz",
        ),
    ),
    Network(
        "testnet",
        "tb",
        *_OF_TESTS,
        0x1D00FFFF,  # these are Bitcoin Core's powLimit (kernel/chainparams.cpp)
        "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943",
        bytes.fromhex("0b110907"),
        ("https://blockstream.info/testnet/api", "https://mempool.space/testnet/api"),
        checkpoint=Known(
            4_842_348, "000000007a61e4230b28ac5cb6b5e5a0130de37ac1faf2f8987d2fa6505b67f4"
        ),
        port=18333,
        seeds=(
            "testnet-seed.bitcoin.jonasschnelli.ch",
            "seed.tbtc.petertodd.net",
            "seed.testnet.bitcoin.sprovoost.nl",
            "testnet-seed.bluematt.me",
            "seed.testnet.achownodes.xyz",
        ),
    ),
    Network(
        "testnet4",
        "tb",
        *_OF_TESTS,
        0x1D00FFFF,
        "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043",
        bytes.fromhex("1c163f28"),
        ("https://mempool.space/testnet4/api",),
        checkpoint=Known(
            123_613, "0000000002368b1e4ee27e2e85676ae6f9f9e69579b29093e9a82c170bf7cf8a"
        ),
        port=48333,
        seeds=("seed.testnet4.bitcoin.sprovoost.nl", "seed.testnet4.wiz.biz"),
    ),
    Network(
        "signet",
        "tb",
        *_OF_TESTS,
        0x1E0377AE,
        "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6",
        bytes.fromhex("0a03cf40"),
        ("https://mempool.space/signet/api",),
        checkpoint=Known(
            293_175, "00000008414aab61092ef93f1aacc54cf9e9f16af29ddad493b908a01ff5c329"
        ),
        port=38333,
        seeds=("seed.signet.bitcoin.sprovoost.nl", "seed.signet.achownodes.xyz"),
    ),
    Network(
        "regtest",
        "bcrt",
        *_OF_TESTS,
        0x207FFFFF,
        "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
        bytes.fromhex("fabfb5da"),
        (SANDBOX_URL,),
        (f"{SANDBOX_URL}/price#/usd",),
        (f"{SANDBOX_URL}/price#/{{currency}}",),
        calls_per_hour=10_000_000,  # no regtest is public: the explorer is one's own
        gone_after=timedelta(),
    ),
)
NETWORKS = {network.name: network for network in _ALL}
