"""Names of browsers: from real User-Agents, a browser's own wishes, and nonsense."""

from btcpay.merchants.sessions import device_of

WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
GECKO = "AppleWebKit/537.36 (KHTML, like Gecko)"
NAMES = {
    "Firefox on Android": "Mozilla/5.0 (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0",
    "Firefox on Linux": "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
    "Firefox on iPhone": (f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_7 like Mac OS X) {WEBKIT}"
        " FxiOS/132.0 Mobile/15E148 Safari/605.1.15"),
    "Safari on iPhone": (f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {WEBKIT}"
        " Version/17.5 Mobile/15E148 Safari/604.1"),
    "Safari on iPad": (f"Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) {WEBKIT}"
        " Version/12.1 Mobile/15E148 Safari/604.1"),
    "Safari on macOS":
        (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT} Version/17.5 Safari/605.1.15"),
    "Chrome on Android":
        (f"Mozilla/5.0 (Linux; Android 10; K) {GECKO} Chrome/130.0.0.0 Mobile Safari/537.36"),
    "Chrome on Windows":
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {GECKO} Chrome/130.0.0.0 Safari/537.36"),
    "Chrome on iPhone": (f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_7 like Mac OS X) {WEBKIT}"
        " CriOS/130.0.6723.37 Mobile/15E148 Safari/604.1"),
    "Chrome on ChromeOS":
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {GECKO} Chrome/130.0.0.0 Safari/537.36"),
    "Edge on Windows":
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {GECKO} Chrome/130.0.0.0 Safari/537.36"
        " Edg/130.0.0.0"),
    "Edge on Android":
        (f"Mozilla/5.0 (Linux; Android 10; K) {GECKO} Chrome/130.0.0.0 Mobile Safari/537.36"
        " EdgA/130.0.0.0"),
    "Samsung Internet on Android":
        (f"Mozilla/5.0 (Linux; Android 10; K) {GECKO} SamsungBrowser/26.0 Chrome/122.0.0.0"
        " Mobile Safari/537.36"),
}  # fmt: skip
ODD = {
    "": ("", ""),
    "curl/8.5.0": ("curl/8.5.0", ""),
    "a browser of our own (Linux)": ("a browser of our own (Linux)", ""),
    "Firefox/1.0": ("Firefox", ""),
    "My\tFridge   2": ("My Fridge 2", ""),
}


def test_a_browser_is_called_what_a_person_calls_it():
    assert [" on ".join(device_of(text)) for text in NAMES.values()] == list(NAMES)


def test_what_no_rule_knows_is_shown_as_it_is():
    assert {text: device_of(text) for text in ODD} == ODD
