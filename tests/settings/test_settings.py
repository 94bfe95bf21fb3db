"""The settings: both sides of every bound, all mistakes at once; defaults: test_documents.py."""

from decimal import Decimal

import pytest

from btcpay.settings.settings import OF_FILES, VARIABLES, read, strange_names
from btcpay.values.errors import SettingsError
from btcpay.values.networks import NETWORKS

PREFIX = "BLOCKTILL_"
SOURCES = " ".join(f"https://{name}.example/#/usd" for name in "abc")


def field_of(settings, name):
    return getattr(settings, name.removeprefix(PREFIX).lower())


def mistakes(**environ):
    with pytest.raises(SettingsError) as caught:
        read({PREFIX + name: value for name, value in environ.items()})
    return caught.value.mistakes


def test_blanks_are_no_value_and_other_names_are_nobodys_mistake():
    blank = dict.fromkeys(set(VARIABLES.values()) - {"BLOCKTILL_METRICS_BIND"}, "  ")
    found = read(blank | {"PATH": "/bin", "BLOCKTILL": "x"})
    assert found == read({})
    assert (found.proxy, found.frame_ancestors) == ("", ())
    assert (found.smtp_url, found.mail_from) == (None, None)


WHOLE = {
    "PRICE_MAX_AGE_S": (1, 3600), "EXPLORER_CALLS_PER_HOUR": (1, 10_000_000),
    "CHECK_MAX_AGE_MIN": (1, 10_080), "TRUSTED_PROXIES": (0, 10),
    "MAX_BODY_BYTES": (1024, 16_777_216), "IDEMPOTENCY_TTL_H": (1, 8760),
    "EMAIL_RETENTION_DAYS": (0, 36_500), "LINK_INVOICE_EXPIRY_MIN": (1, 525_600),
    "LINK_INVOICES_PER_VISITOR": (1, 100_000), "LINK_OPEN_INVOICES": (1, 1_000_000),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_a_plain_whole_number_is_taken_from_its_least_to_its_largest_and_no_further(
    name,
):
    low, high = WHOLE[name]
    for value in (low, high):
        assert field_of(read({PREFIX + name: str(value)}), name) == value
    wrong = (
        "x",
        "1.0",
        "1e3",
        "+5",
        "0x10",
        "1_0",
        "\u0665",
        "5 5",
        "true",
        "9" * 5000,
    )
    for value in (low - 1, high + 1, *wrong):
        (mistake,) = mistakes(**{name: str(value)})
        assert mistake == f"{PREFIX}{name} accepts a whole number from {low} to {high}"


def each(texts):
    return texts.split(" | ")


GOOD = {
    "NETWORK": each("mainnet | testnet | testnet4 | signet | regtest"),
    "DATABASE_URL": each(
        "sqlite:///blocktill.db | sqlite:////var/lib/blocktill.db | "
        "postgresql://u:p@host:5432/name | postgresql://host/name | "
        "postgresql://u@localhost/name?host=/run/postgresql | "
        "postgresql://u:p@host/name?sslmode=verify-full&sslrootcert=/etc/ssl/ca.pem | "
        "postgresql://u:100%25%2F@host/name | postgresql://u@%2Frun%2Fpostgresql/name"
    ),
    "BASE_URL": each(
        "https://pay.example.com | http://[::1]:8000 | https://example.com/shop"
    ),
    "EXPLORERS": ["http://a", "http://a/api https://b:3000/api/"],
    "PRICE_SOURCES": ["http://a#", "http://a#/x http://b?pair=XBT#/0/~1"],
    "CURRENCY_SOURCES": [
        "http://a/{CURRENCY}#/x http://b#/{currency}",
        "http://a?of={currency}#",
    ],
    "PROXY": each(
        "socks5h://127.0.0.1:9050 | socks5h://user:pa%20ss@tor.example:9050 | http://[::1]:8118/"
    ),
    "CONFIRMATIONS": each("1 | 100 | 1 3@1000 6@10000 | 2 1@0.01"),
    "UNDERPAYMENT_TOLERANCE_PERCENT": each("0 | 0.0 | 5 | 5.00 | 0.001"),
    "SECURITY_CONTACT": ["mailto:me@example.com", "https://example.com/report"],
    "SETUP_TOKEN": ["a-token_of-20-letter", "x" * 200],
    "OWNER_PASSWORD": ["x" * 12, "x" * 200, "Grüße vom Hafen", "smtp://me:secret@h"],
    "SMTP_URL": ["smtp://127.0.0.1:25", "smtps://me:secret@mail.example.com"],
    "MAIL_FROM": ["shop@example.com", "Shop <shop@example.com>"],
    "RATE_LIMIT_STORE": each(
        "memory:// | redis://127.0.0.1 | redis://127.0.0.1:6379/0 | redis://[::1]:6379/0 | "
        "rediss://user:secret@redis.example.com:6380/0?ssl_cert_reqs=required"
    ),
    "METRICS_BIND": each("0.0.0.0:9000 | [::1]:9464"),
    "MERCHANT_PAGES": ["on", "off"],
    "FRAME_ANCESTORS": [
        "https://shop.example.com",
        "http://127.0.0.1:8080 https://[::1]",
    ],
    "BIND": each("127.0.0.1:8000 | 0.0.0.0:1 | [::1]:65535 | unix:/run/blocktill.sock"),
}
BAD = {
    "NETWORK": each("main | Mainnet | bitcoin | mainnet testnet"),
    "DATABASE_URL": each(
        "blocktill.db | sqlite://blocktill.db | sqlite:/// | mysql://host/name | "
        "postgresql://host | postgresql:///name | postgresql://host:port/name | "
        "postgresql://host:65536/name | postgresql://u:100%@host/name | "
        "postgresql://u:%zz@host/name | postgresql://u:%00@host/name | "
        "postgresql://u:\udcff@host/name"
    ),
    "PROXY": each(
        "127.0.0.1:9050 | socks5h://127.0.0.1 | socks5h://:9050 | "
        "socks5://127.0.0.1:9050 | socks4a://127.0.0.1:9050 | "
        "https://proxy.example:443 | http://proxy.example:65536 | "
        "http://proxy.example:8118/path"
    ),
    "BASE_URL": each(
        "pay.example.com | ftp://pay.example.com | https:// | https://host:0 | "
        "https://host:65536 | https://host:x | https://ho st | https://host/?a=b | "
        "https://host/#a | https://user:secret@host | javascript:alert(1) | "
        "https://:secret@host | https://@host | https://host/? | https://host/#"
    ),
    "MERCHANT_PAGES": ["yes", "ON", "1"],
    "FRAME_ANCESTORS": each(
        "* | 'self' | https://*.example.com | shop.example.com | "
        "https://shop.example.com/ | https://a; script-src * | https://a,https://b"
    ),
    "EXPLORERS": each(
        "localhost:3000 | http://a ftp://b | http:// | http://a:99999 | http://a/\udcff"
    ),
    "PRICE_SOURCES": each("http://a | http://a#usd | a#/usd | http://a#/x http://b"),
    "CURRENCY_SOURCES": [
        "http://a#/eur",
        "http://a#/{currency} http://b#/usd",
        "http://a/{EUR}#",
    ],
    "CONFIRMATIONS": each(
        "0 | 101 | -1 | x | 1.5 | 1 3 | 1@10 | 1 3@x | 1 0@10 | 1 101@10 | "
        "1 3@1000 6@1000 | 1 6@10000 3@1000 | 1 3@-5 | 1 3@0 | 1, 3@10"
    ),
    "UNDERPAYMENT_TOLERANCE_PERCENT": each(
        "-0.1 | 5.001 | NaN | Infinity | x | 1% | 1,5 | \u0663 | 0_1"
    ),
    "SECURITY_CONTACT": [
        "me@example.com",
        "http://example.com",
        "mailto:a@b\nExpires: never",
    ],
    "SETUP_TOKEN": ["a-token_of-19-lette", "x" * 201, "a token with blanks in it"],
    "OWNER_PASSWORD": [
        "x" * 11,
        "x" * 201,
        "two lines\nof text",
        "a zero\u200bwidth space",
    ],
    "SMTP_URL": ["mail.example.com", "smtp://", "smtp://me@h"],
    "MAIL_FROM": ["shop", "a@b, c@d"],
    "RATE_LIMIT_STORE": each(
        "memory | memory://x | redis:// | redis://host:port | redis://host:99999/0 | redis:/h | "
        "memcached://host | file:///x"
    ),
    "METRICS_BIND": each("9464 | 127.0.0.1 | :9464 | 127.0.0.1:99999 | unix:/x | a b"),
    "BIND": each(
        "8000 | 127.0.0.1 | host: | :8000x | host:65536 | host:99999 | ho st:80"
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_value_is_taken(name):
    for text in GOOD[name]:
        read({PREFIX + name: text})


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_a_mistake_that_names_its_variable(name):
    for text in BAD[name]:
        (mistake,) = mistakes(**{name: text})
        assert mistake.startswith(f"{PREFIX}{name} accepts "), text


def test_every_mistake_is_reported_at_once():
    wrong = {name: texts[0] for name, texts in BAD.items()} | dict.fromkeys(WHOLE, "x")
    wrong["PRICE_QUORUM"] = "0"
    found = mistakes(**wrong)
    assert sorted(line.split()[0] for line in found) == sorted(
        PREFIX + name for name in wrong
    )


def test_no_mistake_repeats_the_value_for_it_may_be_a_secret():
    names = ("DATABASE_URL", "RATE_LIMIT_STORE", "SMTP_URL", "EXPLORERS")
    found = mistakes(**dict.fromkeys(names, "htp://u:hunter2@h/n"))
    assert len(found) == 4 and "hunter2" not in " ".join(found)


def test_the_quorum_is_more_than_half_of_the_sources_or_what_is_said_up_to_all():
    for sources, quorum in enumerate((1, 2, 2, 3, 3, 4, 4), start=1):
        named = " ".join(f"http://host{number}#/usd" for number in range(sources))
        assert read({"BLOCKTILL_PRICE_SOURCES": named}).price_quorum == quorum
    for text in "13":
        environ = {"BLOCKTILL_PRICE_SOURCES": SOURCES, "BLOCKTILL_PRICE_QUORUM": text}
        assert read(environ).price_quorum == int(text)
    for text in "04":
        (mistake,) = mistakes(PRICE_SOURCES=SOURCES, PRICE_QUORUM=text)
        assert mistake == "BLOCKTILL_PRICE_QUORUM accepts a whole number from 1 to 3"


@pytest.mark.parametrize(
    ("network", "per_hour"), [("mainnet", 600), ("regtest", 10_000_000)]
)
def test_a_network_brings_its_explorers_and_sources(network, per_hour):
    found = read({"BLOCKTILL_NETWORK": network})
    brought = NETWORKS[network]
    assert (found.network, found.explorers) == (brought, brought.explorers)
    assert found.explorer_calls_per_hour == per_hour
    sources = [source.url for source in found.price_sources]
    named = [source.partition("#")[0] for source in brought.price_sources]
    assert sources == named and found.price_quorum == len(named) // 2 + 1


def test_the_service_listens_at_the_port_of_its_base_url_unless_told_otherwise():
    for host, port in (
        ("127.0.0.1:9000", 9000),
        ("example.com", 8000),
        ("example.com:8443", 8443),
    ):
        environ = {"BLOCKTILL_BASE_URL": f"https://{host}"}
        assert read(environ).bind == f"127.0.0.1:{port}"
        assert read(environ | {"BLOCKTILL_BIND": "0.0.0.0:80"}).bind == "0.0.0.0:80"


def test_trailing_slashes_of_roots_are_dropped_and_nothing_can_be_changed_later():
    settings = read(
        {
            "BLOCKTILL_BASE_URL": "http://a/",
            "BLOCKTILL_EXPLORERS": "http://b/api/ http://c/",
        }
    )
    assert (settings.base_url, settings.explorers) == (
        "http://a",
        ("http://b/api", "http://c"),
    )
    with pytest.raises(AttributeError):
        settings.base_url = "http://b"


def test_peers_stand_beside_explorers_or_in_their_place():
    environ = {"BLOCKTILL_PEERS": "10.0.0.5:8333,[::1]:18444, node.lan:8333"}
    places = ("10.0.0.5:8333", "[::1]:18444", "node.lan:8333")
    assert read(environ).peers == places and read(environ).explorers
    assert read(environ | {"BLOCKTILL_EXPLORERS": "none"}).explorers == ()
    (alone,) = mistakes(EXPLORERS="none")
    assert alone == "BLOCKTILL_EXPLORERS accepts none only with BLOCKTILL_PEERS"
    tor = "http://127.0.0.1:8118"
    (far,) = mistakes(PEERS="10.0.0.5:8333,node.lan:8333", PROXY=tor)
    assert far.startswith(
        "BLOCKTILL_PEERS accepts with an http:// proxy only peers on this machine"
    )
    read({"BLOCKTILL_PEERS": "10.0.0.5:8333", "BLOCKTILL_PROXY": tor})
    assert read({"BLOCKTILL_PEERS": "auto", "BLOCKTILL_NETWORK": "signet"}).peers == (
        "auto",
    )
    for ways, network, said in (
        ({"PEERS": "auto"}, "regtest", "accepts auto only on public networks"),
        (
            {"PEERS": "abc.onion:8333"},
            "signet",
            "accepts a .onion name only with BLOCKTILL_PROXY",
        ),
        (
            {"PEERS": "auto", "PROXY": tor},
            "signet",
            "accepts with an http:// proxy only",
        ),
    ):
        (mistake,) = mistakes(NETWORK=network, **ways)
        assert mistake.startswith(f"BLOCKTILL_PEERS {said}")
    for wrong in ("node", "node:", "node:0", "node:65536", "http://node:1", "a b:1"):
        (mistake,) = mistakes(PEERS=wrong)
        assert mistake.startswith("BLOCKTILL_PEERS accepts host:port of nodes")


def test_the_confirmations_follow_the_amount_from_each_step_on():
    amounts = [
        Decimal(usd)
        for usd in ("0.01", "999.99", "1000", "9999.99", "10000", "1000000")
    ]
    for text, blocks in (("1 3@1000 6@10000", [1, 1, 3, 3, 6, 6]), ("", [1] * 6)):
        asked = read({"BLOCKTILL_CONFIRMATIONS": text}).confirmations
        assert [asked.for_usd(usd) for usd in amounts] == blocks


@pytest.mark.parametrize("name", ["EXPLORERS", "PRICE_SOURCES"])
def test_an_onion_name_needs_a_proxy_that_looks_names_up(name):
    text = f"http://{'a' * 56}.onion/api" + ("#/usd" if name == "PRICE_SOURCES" else "")
    (mistake,) = mistakes(**{name: text})
    assert mistake.startswith(
        f"{PREFIX}{name} accepts a .onion name only with BLOCKTILL_PROXY"
    )
    read({PREFIX + name: text, "BLOCKTILL_PROXY": "http://127.0.0.1:8118"})
    (mistake,) = mistakes(PROXY="socks5://127.0.0.1:9050")
    assert mistake.endswith("; socks5:// would look names up on this machine")


@pytest.mark.parametrize("name", OF_FILES)
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_secret_is_read_from_the_file_that_is_named(name, end, tmp_path):
    text = GOOD[name.removeprefix(PREFIX)][-1]
    (tmp_path / "secret").write_text(text + end, newline="")
    read_from_file = read({OF_FILES[name]: f"{tmp_path}/secret"})
    assert field_of(read_from_file, name) == field_of(read({name: text}), name)


WRONG_FILES = {
    "is missing": (None, "cannot be read: No such file or directory"),
    "is empty": (b"", "is empty"),
    "has a line end alone": (b"\n", "is empty"),
    "is not UTF-8": (b"hunter2\xff", "is not in UTF-8"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_file_of_a_secret_that_is_wrong_is_named_and_never_shown(name, tmp_path):
    content, expected = WRONG_FILES[name]
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    files = list(OF_FILES.values())
    found = mistakes(
        **{name.removeprefix(PREFIX): f"{tmp_path}/secret" for name in files}
    )
    assert [mistake.partition(":")[0] for mistake in found] == files
    assert all(expected in mistake and "hunter2" not in mistake for mistake in found)


def test_a_file_that_has_no_good_value_is_told_by_the_variables_name(tmp_path):
    (tmp_path / "secret").write_text("mysql://user:hunter2@host/name\n")
    (mistake,) = mistakes(DATABASE_URL_FILE=f"{tmp_path}/secret")
    assert (
        mistake.startswith("BLOCKTILL_DATABASE_URL accepts")
        and "hunter2" not in mistake
    )


def test_a_secret_and_its_file_are_not_both_set(tmp_path):
    (mistake,) = mistakes(
        DATABASE_URL="sqlite:///a.db", DATABASE_URL_FILE=f"{tmp_path}/secret"
    )
    assert mistake.startswith(
        "BLOCKTILL_DATABASE_URL and BLOCKTILL_DATABASE_URL_FILE are both set"
    )


def test_a_name_that_nobody_reads_is_strange_and_so_is_a_file_of_what_is_no_secret():
    names = [
        "BLOCKTILL_DATABASE_URL_FILE",
        "BLOCKTILL_NETWORK_FILE",
        "BLOCKTILL_NETWRK",
        "BLOCKTILL_ENV_FILE",
        "BLOCKTILL_URL",
        "BLOCKTILL_KEY",
    ]
    environ = dict.fromkeys(names, "x") | {"BLOCKTILL_BND": " ", "PATH": "/bin"}
    assert strange_names(environ) == ["BLOCKTILL_NETWORK_FILE", "BLOCKTILL_NETWRK"]
