"""The signs of currencies, and how the users of some currencies write amounts."""

# The currencies that each sign may stand for. `$` in an Australian shop is the Australian dollar.
# Signs are in lower case, after NFKC.
SIGNS = {
    "$": "USD AUD CAD NZD HKD SGD TWD MXN ARS CLP COP BBD BMD BND BSD BZD CUP DOP FJD GYD JMD KYD"
    " LRD NAD SBD SRD SVC TTD UYU XCD CVE MOP NIO TOP WST",
    "us$": "USD",
    "a$": "AUD",
    "au$": "AUD",
    "c$": "CAD NIO",
    "ca$": "CAD",
    "can$": "CAD",
    "nz$": "NZD",
    "hk$": "HKD",
    "s$": "SGD",
    "nt$": "TWD",
    "mx$": "MXN",
    "ar$": "ARS",
    "r$": "BRL",
    "\u20ac": "EUR",
    "euro": "EUR",
    "euros": "EUR",
    "\u00a3": "GBP EGP FKP GIP LBP SDG SHP SSP SYP",
    "\u00a5": "JPY CNY",
    "\u5186": "JPY",
    "\u5143": "CNY TWD HKD",
    "kr": "SEK NOK DKK ISK",
    "\u20b9": "INR",
    "rs": "INR PKR LKR NPR MUR SCR",
    "\u20a8": "INR PKR LKR NPR MUR SCR",
    "\u20a9": "KRW KPW",
    "\uc6d0": "KRW KPW",
    "\u20bd": "RUB",
    "\u20ba": "TRY",
    "tl": "TRY",
    "\u20b4": "UAH",
    "\u20aa": "ILS",
    "\u20ab": "VND",
    "\u20b1": "PHP",
    "\u0e3f": "THB",
    "\u20a6": "NGN",
    "\u20a1": "CRC",
    "\u20b2": "PYG",
    "\u20b8": "KZT",
    "\u20ae": "MNT",
    "\u20ad": "LAK",
    "\u20bc": "AZN",
    "\u20be": "GEL",
    "\u20b5": "GHS",
    "\u09f3": "BDT",
    "\u17db": "KHR",
    "z\u0142": "PLN",
    "k\u010d": "CZK",
    "ft": "HUF",
    "lei": "RON MDL",
    "\u043b\u0432": "BGN",
    "r": "ZAR",
    "rp": "IDR",
    "rm": "MYR",
    "s/": "PEN",
    "fr": "CHF",
    "sfr": "CHF",
    "ksh": "KES",
    "\u20bf": "",  # these signs are of no ISO 4217 currency
    "btc": "",
    "sat": "",
    "sats": "",
    "\u00a2": "",
    "%": "",
}
# signs that can end with a point, as in `Rs.50`
WITH_POINT = frozenset(["rs", "kr", "fr", "sfr", "rp", "ksh", "s/"])
# currencies whose users write 1,00,000
WITH_LAKHS = frozenset(["INR", "PKR", "BDT", "NPR", "LKR", "BTN"])
# Currencies with three decimals whose prices are thousands. So `25.000` may well mean 25000, and is
# refused as ambiguous.
WITH_LARGE_PRICES = frozenset(["IQD"])
