"""A host has one spelling, that of name servers and browsers; what nobody can tell is refused."""

import pytest

from btcpay.settings.settings import read
from btcpay.values.hosts import ascii_host, web_url, with_ascii_host

STRASSE = "xn--strae-oqa.de"
HOSTS = {
    "a name": ("pay.example.com", "pay.example.com"),
    "capitals": ("PAY.Example.COM", "pay.example.com"),
    "a dot at the end": ("pay.example.com.", "pay.example.com"),
    "sharp s, which the codec of 2003 writes as ss": ("straße.de", STRASSE),
    "the same name as servers know it": (STRASSE, STRASSE),
    "the same in capitals": (STRASSE.upper(), STRASSE),
    "final sigma": ("φίλος.gr", "xn--kxaymmq.gr"),
    "a letter with its mark apart": ("bu\u0308cher.example", "xn--bcher-kva.example"),
    "full-width letters and dots": ("ｐａｙ．ｅｘａｍｐｌｅ。com", "pay.example.com"),
    "half-width dot": ("pay｡example", "pay.example"),
    "Arabic": ("مثال.إختبار", "xn--mgbh0fb.xn--kgbechtv"),
    "Hindi with a joiner that belongs there": (
        "क्\u200dष.example",
        "xn--11b2ezcw70k.example",
    ),
    "a soft hyphen, which is none": ("pay\u00ad.example", "pay.example"),
    "one word": ("localhost", "localhost"),
    "a machine in a network of one's own": ("bitcoin_node-1", "bitcoin_node-1"),
    "two hyphens of a provider's own": ("r3---sn-4g5e.example", "r3---sn-4g5e.example"),
    "an onion": ("A" * 56 + ".onion", "a" * 56 + ".onion"),
    "IPv4": ("127.0.0.1", "127.0.0.1"),
    "IPv4 in full-width digits": ("１２７．０．０．１", "127.0.0.1"),
    "IPv6": ("::1", "::1"),
    "IPv6 with zeros and capitals": ("2001:0DB8::0001", "2001:db8::1"),
    "the longest": (
        ".".join(["a" * 49] * 5) + ".bcd",
        ".".join(["a" * 49] * 5) + ".bcd",
    ),
}
NO_HOSTS = {
    "nothing": "",
    "a dot": ".",
    "an empty part": "pay..example",
    "an empty part of other letters": "ü..example",
    "a blank": "pay example",
    "a slash that grows out of a sign": "pay\u2100example",
    "a sign of eighteen letters and blanks": "\ufdfa.example",
    "capital sharp s, which browsers of different years read differently": "STRAẞE.de",
    "an emoji": "🍕.example",
    "an emoji as servers know it": "xn--vi8h.example",
    "no Punycode": "xn--\u00e9",
    "Punycode of nothing": "xn--.example",
    "Punycode of ASCII": "xn--abc-.example",
    "Punycode of a capital": "xn--BCHER-1va.example".replace("1va", "4pa"),
    "a joiner where none belongs": "pay\u200d.example",
    "two directions in a part": "aا.example",
    "a mark without its letter": "\u0301.example",
    "a hyphen at the start": "-pay.example",
    "a part of 64 letters": "a" * 64 + ".example",
    "a part that is 64 letters in ASCII": "ü" * 58 + ".example",
    "254 letters": ".".join(["a" * 49] * 5) + ".bcde",
    "this machine in another spelling": "127.1",
    "and in one number": "2130706433",
    "and with zeros": "127.0.0.01",
    "and to the base of sixteen": "0x7f000001",
    "IPv6 that is none": "::g",
    "brackets": "[::1]",
    "the end of a line": "pay.example\n",
    "a wildcard": "*.example",
}


@pytest.mark.parametrize(("text", "host"), HOSTS.values(), ids=HOSTS)
def test_a_host_is_spelled_as_name_servers_know_it(text, host):
    assert ascii_host(text) == host
    assert ascii_host(host) == host


@pytest.mark.parametrize("text", NO_HOSTS.values(), ids=NO_HOSTS)
def test_what_is_no_host_or_could_be_two_is_refused(text):
    with pytest.raises(ValueError):
        ascii_host(text)


URLS = {
    "the rest stays": ("HTTPS://me:P%40@Straße.de:8443/A?b=C#D",
        f"HTTPS://me:P%40@{STRASSE}:8443/A?b=C#D"),
    "IPv6": ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]:80/"),
    "a host that is written like its scheme": ("http://http/", "http://http/"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "url"), URLS.values(), ids=URLS)
def test_a_url_gets_its_host_in_ascii(text, url):
    assert with_ascii_host(text) == url


@pytest.mark.parametrize(
    "text", ["", "https://", "//", "https:///a", "https://[1.2.3.4]/"]
)
def test_a_url_without_a_host_is_refused(text):
    with pytest.raises(ValueError):
        with_ascii_host(text)


def test_a_web_address_of_ascii_stays_as_it_was_typed():
    assert web_url("https://SHOP.example:443/a") == "https://SHOP.example:443/a"
    assert web_url("https://straße.de/a") == f"https://{STRASSE}/a"
    for wrong in (
        "https://straße.de/é",
        "https://xn--vi8h.example/",
        "https://🍕.example/",
    ):
        with pytest.raises(ValueError):
            web_url(wrong)


# Every setting that names a host.
SETTINGS = {
    "DATABASE_URL": ("postgresql://u:P@{}:5432/name", "database_url"),
    "BASE_URL": ("https://{}/shop", "base_url"),
    "PROXY": ("http://u:P@{}:8118", "proxy"),
    "EXPLORERS": ("https://{}/api", "explorers"),
    "PEERS": ("{}:8333", "peers"),
    "PRICE_SOURCES": ("https://{}/#/usd", "price_sources"),
    "CURRENCY_SOURCES": ("https://{}/{{currency}}#", "currency_sources"),
    "RATE_LIMIT_STORE": ("redis://u:P@{}:6379/0", "rate_limit_store"),
    "FRAME_ANCESTORS": ("https://{}", "frame_ancestors"),
    "SMTP_URL": ("smtp://u:P@{}", "smtp_url"),
    "MAIL_FROM": ("shop@{}", "mail_from"),
    "BIND": ("{}:8000", "bind"),
    "METRICS_BIND": ("{}:9464", "metrics_bind"),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("host", ["straße.de", "STRASSE.de", "strasse．de"])
def test_every_setting_that_names_a_host_reads_it_so(name, host):
    form, field = SETTINGS[name]
    found = {getattr(read({f"BLOCKTILL_{name}": form.format(text)}), field)
             for text in (host, ascii_host(host))}  # fmt: skip
    assert len(found) == 1
    assert ascii_host(host) in str(found)


def test_the_path_of_the_base_url_is_ascii_too():
    assert read({"BLOCKTILL_BASE_URL": "https://a.example/caf%C3%A9/é"}).base_url == (
        "https://a.example/caf%C3%A9/%C3%A9"
    )
