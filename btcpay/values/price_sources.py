"""Where prices come from unless BTCPAY_PRICE_SOURCES and BTCPAY_CURRENCY_SOURCES say otherwise."""

# Public tickers that need no key. Five operators in three jurisdictions, so that one outage,
# one block of addresses or one wrong number does not decide.
PUBLIC_TICKERS = (
    "https://api.coinbase.com/v2/prices/BTC-USD/spot#/data/amount",
    "https://api.kraken.com/0/public/Ticker?pair=XBTUSD#/result/XXBTZUSD/c/0",
    "https://www.bitstamp.net/api/v2/ticker/btcusd/#/last",
    "https://api.gemini.com/v1/pubticker/btcusd#/last",
    "https://api-pub.bitfinex.com/v2/ticker/tBTCUSD#/6",
)

# The same in any other currency, of which most know some thirty and mempool.space six.
PUBLIC_CURRENCY_TICKERS = (
    "https://api.coinbase.com/v2/prices/BTC-{CURRENCY}/spot#/data/amount",
    "https://blockchain.info/ticker#/{CURRENCY}/last",
    "https://bitpay.com/rates/BTC/{CURRENCY}#/data/rate",
    "https://api.coingecko.com/api/v3/simple/price?ids=bitcoin&vs_currencies={currency}"
    "#/bitcoin/{currency}",
    "https://mempool.space/api/v1/prices#/{CURRENCY}",
)
