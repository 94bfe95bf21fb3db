"""The networks: each one's first block; and where a host is, by its text."""

import pytest

from btcpay.bitcoin.header import target_of
from btcpay.bitcoin.wire import hash256, hash_from_hex, hash_to_hex, ser_uint32
from btcpay.merchants.branding import checked_url
from btcpay.notify.receivers import webhook_url
from btcpay.values.errors import CommandError
from btcpay.values.hosts import is_here, is_near, web_parts, web_url
from btcpay.values.networks import NETWORKS

GENESIS = {  # merkle root, time, bits, nonce of Bitcoin Core's kernel/chainparams.cpp
    "mainnet": (None, 1231006505, 0x1D00FFFF, 2083236893),
    "testnet": (None, 1296688602, 0x1D00FFFF, 414098458),
    "testnet4": ("7aa0a7ae1e223414cb807e40cd57e667b718e42aaf9306db9102fe28912b7b4e", 1714777860,
        0x1D00FFFF, 393743547),
    "signet": (None, 1598918400, 0x1E0377AE, 52613770),
    "regtest": (None, 1296688602, 0x207FFFFF, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_the_first_block_of_each_network_hashes_to_what_is_compared(name):
    root, time, bits, nonce = GENESIS[name]
    root = root or "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
    header = (
        ser_uint32(1)
        + bytes(32)
        + hash_from_hex(root)
        + ser_uint32(time)
        + ser_uint32(bits)
        + ser_uint32(nonce)
    )
    assert hash_to_hex(hash256(header)) == NETWORKS[name].genesis_hash


@pytest.mark.parametrize("name", NETWORKS)
def test_each_public_network_has_a_checkpoint_with_the_work_that_it_asks_for(name):
    """Bitcoin Core v31.0, src/kernel/chainparams.cpp, defaultAssumeValid."""
    found = NETWORKS[name].checkpoint
    assert (found is None) == (name == "regtest")
    if found:
        assert found.hash == f"{int(found.hash, 16):064x}"
        assert int(found.hash, 16) <= target_of(NETWORKS[name].max_target_bits)


HERE = ["127.0.0.1", "127.0.0.9", "::1", "localhost", "ticker.localhost"]
NEAR = ["10.0.0.5", "192.168.1.5", "172.16.0.1", "100.64.0.1", "fd00::1"]
FAR = [
    "8.8.8.8",
    "2600::1",
    "electrs",
    "127.1",
    "mempool.space",
    "localhost.example.com",
    "",
]


def test_a_host_is_this_machine_or_in_its_network_or_far():
    hosts = [*HERE, *NEAR, *FAR, "notlocalhost", None]
    assert [host for host in hosts if is_here(host)] == HERE
    assert [host for host in hosts if is_near(host)] == HERE + NEAR


# All readers of such a host understand the same.
PLAIN = [
    *(
        "shop.example",
        "Shop-1.EXAMPLE",
        "xn--kaffee-bua.example",
        "1.shop.example",
        "localhost",
    ),
    *("a.localhost", "127.0.0.1", "192.168.1.5", "[::1]", "[2001:db8::1]"),
    f"{'a' * 63}.example",
]
# They stand for other machines here and there, or for more than one in a browser's policy.
ODD = {
    "every host in a policy": ["*.example", "*", "shop.*"],
    "a word or the end of a policy": [
        "'self'",
        "a;script-src",
        "a,b.example",
        "a$.example",
    ],
    "this machine, as browsers and resolvers read it": [
        *(
            "127.1",
            "2130706433",
            "0",
            "0x7f.1",
            "0177.0.0.1",
            "127.0.0.01",
            "127.0.0x1",
            "1.1.1",
        ),
        *("localhost.", "%6cocalhost", "127.0.0.1.", "127\u30020\u30020\u30021"),
        "\uff11\uff12\uff17.0.0.1",
    ],
    "an address of IPv6 in another spelling": [
        "[0:0:0:0:0:0:0:1]",
        "[::01]",
        "[::1%25lo]",
        "::1",
    ],
    "an address of no version that exists": ["[v1.a]", "[v1.shop.example]"],
    "a name that only this network knows": ["intranet", "db"],
    "no name": [
        "",
        ".",
        "..",
        "a..example",
        ".example",
        "a_b.example",
        f"{'a' * 64}.example",
    ],
}


def test_a_web_address_names_a_host_that_all_readers_understand_alike():
    for host in PLAIN:
        for address in (
            f"https://{host}",
            f"http://{host}:8080/a?b#c",
            f"https://u:p@{host}/",
        ):
            assert web_parts(address).netloc.endswith((host, f"{host}:8080")), address
    for case, hosts in ODD.items():
        for host in hosts:
            with pytest.raises(ValueError):
                pytest.fail(f"{case}: {web_parts(f'https://{host}/')}")


UNREAD = {
    "another scheme": "ftp://shop.example/",
    "no scheme": "//shop.example/",
    "a new line": "https://shop.example/\r\nX: y",
    "a tab, which parsers leave out": "https://shop.ex\tample/",
    "U+0000": "https://shop.example/\0",
    "a letter that is not ASCII": "https://shop.example/caf\u00e9",
    "a backslash, which browsers read as a slash": "https://shop.example\\@evil.example/",
    "too long": "https://shop.example/" + "a" * 1980,
    "a host behind the last sign that is looked at": f"http://{'u' * 1990}@localhost.evil.example",
    "no port": "https://shop.example:0/",
    "a port that cannot be": "https://shop.example:70000/",
}


def test_no_other_text_is_a_web_address():
    assert web_parts("https://shop.example/" + "a" * 1979).hostname == "shop.example"
    for case, address in UNREAD.items():
        with pytest.raises(ValueError):
            pytest.fail(f"{case}: {web_parts(address)}")


@pytest.mark.parametrize(
    "accepts",
    [
        pytest.param(web_url, id="any address"),
        pytest.param(
            lambda url: webhook_url(url, NETWORKS["mainnet"]), id="a webhook's"
        ),
        pytest.param(checked_url, id="one to lead back to"),
    ],
)
def test_an_address_has_at_most_2000_characters_in_all_whatever_its_scheme(accepts):
    longest = "https://shop.example/".ljust(2000, "x")
    assert accepts(longest) == longest
    with pytest.raises((ValueError, CommandError)):
        accepts(longest + "x")
