"""What differs between the Bitcoin networks: prefixes, explorers, price sources."""

from dataclasses import dataclass

SANDBOX_URL = "http://127.0.0.1:8001"

# Public tickers that need no key. Five operators in three jurisdictions, so that one outage,
# one block of addresses or one wrong number does not decide.
PUBLIC_TICKERS = (
    "https://api.coinbase.com/v2/prices/BTC-USD/spot#/data/amount",
    "https://api.kraken.com/0/public/Ticker?pair=XBTUSD#/result/XXBTZUSD/c/0",
    "https://www.bitstamp.net/api/v2/ticker/btcusd/#/last",
    "https://api.gemini.com/v1/pubticker/btcusd#/last",
    "https://api-pub.bitfinex.com/v2/ticker/tBTCUSD#/6",
)


@dataclass(frozen=True)
class Network:
    """One Bitcoin network.

    `bech32_hrp`: human-readable part (BIP173); `p2pkh`, `p2sh`: base58check version bytes;
    `main_keys`: whether extended keys are xpub/ypub/zpub (BIP32, SLIP-132) or tpub/upub/vpub;
    `max_target_bits`: the easiest target that a proof's headers may claim, in compact form;
    `explorers`: Esplora roots; `price_sources`: URL#/json/pointer.
    """

    name: str
    bech32_hrp: str
    p2pkh: bytes
    p2sh: bytes
    main_keys: bool
    max_target_bits: int
    explorers: tuple[str, ...]
    price_sources: tuple[str, ...] = PUBLIC_TICKERS


NETWORKS = {
    network.name: network
    for network in (
        Network(
            "mainnet",
            "bc",
            b"\x00",
            b"\x05",
            True,
            # A quarter of the difficulty of November 2025 (1.52e14, bits 0x1701d936): a chain of
            # less work is not the one that merchants mean, and costs a forger this much.
            0x170764D8,
            ("https://blockstream.info/api", "https://mempool.space/api"),
        ),
        Network(
            "testnet",
            "tb",
            b"\x6f",
            b"\xc4",
            False,
            0x1D00FFFF,  # these are Bitcoin Core's powLimit (kernel/chainparams.cpp)
            ("https://blockstream.info/testnet/api", "https://mempool.space/testnet/api"),
        ),
        Network(
            "testnet4",
            "tb",
            b"\x6f",
            b"\xc4",
            False,
            0x1D00FFFF,
            ("https://mempool.space/testnet4/api",),
        ),
        Network(
            "signet",
            "tb",
            b"\x6f",
            b"\xc4",
            False,
            0x1E0377AE,
            ("https://mempool.space/signet/api",),
        ),
        Network(
            "regtest",
            "bcrt",
            b"\x6f",
            b"\xc4",
            False,
            0x207FFFFF,
            (SANDBOX_URL,),
            (f"{SANDBOX_URL}/price#/usd",),
        ),
    )
}
