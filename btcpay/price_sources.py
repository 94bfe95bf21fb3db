"""Where the price comes from unless BTCPAY_PRICE_SOURCES says otherwise."""

# Public tickers that need no key. Five operators in three jurisdictions, so that one outage,
# one block of addresses or one wrong number does not decide.
PUBLIC_TICKERS = (
    "https://api.coinbase.com/v2/prices/BTC-USD/spot#/data/amount",
    "https://api.kraken.com/0/public/Ticker?pair=XBTUSD#/result/XXBTZUSD/c/0",
    "https://www.bitstamp.net/api/v2/ticker/btcusd/#/last",
    "https://api.gemini.com/v1/pubticker/btcusd#/last",
    "https://api-pub.bitfinex.com/v2/ticker/tBTCUSD#/6",
)
