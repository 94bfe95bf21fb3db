"""Calls through a proxy: no name is looked up here, and nobody on the way may hold a call."""

import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from btcpay.http import http_client
from btcpay.notify import receivers
from btcpay.values.errors import Unreachable
from tests.support.builders import Shop, TickerServer, clean_environ
from tests.support.fake_esplora import FakeEsplora, dripping, say, serving_sandbox
from tests.support.forge import forge
from tests.support.paths import PROJECT
from tests.support.receiver import Receiver
from tests.support.tunnels import Http, Proxy, Socks

pytestmark = pytest.mark.slow

pytest.importorskip("socks")
NAME = "explorer.invalid"  # RFC 2606: in no DNS
looked_up: list[str] = []


def note_lookups(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname") and arguments[0]:
        looked_up.append(str(arguments[0]))


# for as long as the process lives: nothing takes it off again
sys.addaudithook(note_lookups)


@pytest.fixture(params=[Socks, Http], ids=["socks", "http proxy"])
def proxy(request, server):
    looked_up.clear()
    with request.param(int(server.root.rpartition(":")[2])) as started:
        yield started


def get(server, proxy, timeout_s=10, host=NAME):
    session = http_client.Session(proxy=proxy)
    url = f"{server.root.partition(':')[0]}://{host}:{1000}/x"
    return session.get(url, timeout_s, http_client.Response(bytes, 1_000_000))


def test_the_proxy_gets_the_name_and_this_machine_looks_up_none(server, proxy):
    server.instead = lambda _: say("there")
    assert get(server, proxy.url) == b"there"
    assert proxy.asked == [(NAME, 1000)]
    assert NAME not in looked_up


def test_the_proxy_gets_name_and_password(server, proxy):
    server.instead = lambda _: say("there")
    get(server, proxy.url.replace("://", "://shop:pa%20ss@"))
    assert proxy.logins[0] in (b"shop:pa ss", b"c2hvcDpwYSBzcw==")


def test_the_environments_proxies_are_not_used(server, proxy, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    with pytest.raises(Unreachable):
        get(server, "")
    assert proxy.asked == []


BAD_PROXIES: dict[str, tuple[type[Proxy], dict[str, Any]]] = {
    # pysocks waits for each byte of what the server says that it has bound.
    "socks drips a bound name": (Socks, {"instead": (b"\x05\x00\x00\x03\xff", b"a")}),
    "socks drips a bound IPv6 address": (
        Socks,
        {"instead": (b"\x05\x00\x00\x04", b"a")},
    ),
    "http drips its status": (Http, {"instead": (b"HTTP/1.1 2", b"0")}),
    "http drips headers": (Http, {"instead": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n")}),
    "http drips one long header": (
        Http,
        {"instead": (b"HTTP/1.1 200 OK\r\nX-A: ", b"b")},
    ),
    "socks says nothing": (Socks, {"instead": (b"", b"")}),
    "http says nothing": (Http, {"instead": (b"", b"")}),
    "socks hangs up": (Socks, {"closes": True}),
    "http hangs up": (Http, {"closes": True}),
}


@pytest.mark.parametrize("name", BAD_PROXIES)
def test_a_proxy_that_never_connects_is_left_at_the_time_out(server, name):
    kind, how = BAD_PROXIES[name]
    with kind(0, **how) as proxy:
        began_s = time.monotonic()
        with pytest.raises(Unreachable):
            get(server, proxy.url, 0.6)
        assert time.monotonic() - began_s < 20
        assert proxy.asked, "it was not asked"


def test_a_proxy_that_is_not_there_is_no_answer(server):
    for scheme in ("socks5h", "http"):
        with pytest.raises(
            Unreachable, match="be asked through the proxy: Connection refused"
        ):
            get(server, f"{scheme}://127.0.0.1:9")


def test_slow_steps_share_one_time_out(server, proxy, released):
    """The server behind a proxy that took half of the time has the other half."""
    server.instead = lambda _: dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", released)

    def took_s():
        began_s = time.monotonic()
        with pytest.raises(Unreachable):
            get(server, proxy.url, 3)
        return time.monotonic() - began_s

    # a machine that stands still is not slow thrice
    assert any(took_s() < 5.5 for _ in range(3))


def test_a_tls_handshake_that_never_ends_behind_a_proxy_is_left_at_the_time_out():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for kind in (Socks, Http):
            with kind(port) as proxy, pytest.raises(Unreachable):
                began_s = time.monotonic()
                session = http_client.Session(proxy=proxy.url)
                wanted = http_client.Response(bytes, 100)
                session.get(f"https://{NAME}/x", 0.6, wanted)
            assert proxy.asked == [(NAME, 443)] and time.monotonic() - began_s < 20


def test_an_explorer_of_ones_own_is_asked_directly_beside_the_proxy():
    with FakeEsplora() as plain, Http(0) as proxy:
        plain.instead = lambda _: say("there")
        session = http_client.Session(proxy=proxy.url)
        wanted = http_client.Response(bytes, 100)
        assert session.get(f"{plain.root}/x", 5, wanted) == b"there"
        assert proxy.asked == []


@pytest.mark.parametrize("kind", [Socks, Http])
def test_price_and_explorer_of_a_shop_come_through_the_proxy(
    open_shops, tmp_path, clock, kind
):
    sources = "http://ticker.invalid/a#/usd http://ticker.invalid/b#/usd"
    with TickerServer() as ticker, kind(int(ticker.url.split(":")[2][:-1])) as proxy:
        shop: Shop = open_shops(
            BLOCKTILL_PRICE_SOURCES=sources, BLOCKTILL_PROXY=proxy.url
        )
        assert shop.post("/invoices", {"amount_usd": 5}).status_code == 201
        assert set(proxy.asked) == {("ticker.invalid", 80)}
    with serving_sandbox(tmp_path / "chain", clock) as (_, chain):
        with kind(int(chain.rpartition(":")[2])) as proxy:
            environ = {
                "BLOCKTILL_EXPLORERS": f"http://{NAME}:3000",
                "BLOCKTILL_PROXY": proxy.url,
            }
            ended = forge().run(shop.environ | environ, ["check"])
        assert ended.status == 0, ended.errors
        assert set(proxy.asked) == {(NAME, 3000)}


@pytest.mark.parametrize("kind", [Socks, Http])
def test_a_webhook_is_told_through_the_proxy(shop, kind):
    """By the check, and by `webhook test`: whoever hides where the shop is hides it there too."""
    url = f"http://{NAME}:1000/hook"
    added = receivers.add(
        shop.service.db, shop.merchant_id, url, None, [], shop.clock()
    )
    shop.link()
    with Receiver() as receiver, kind(receiver.port) as proxy:
        environ = shop.environ | {"BLOCKTILL_PROXY": proxy.url}
        for words in (["check"], ["webhook", "test", added.id]):
            forge().run(environ, words)
        assert len(receiver.messages) == 2
        assert set(proxy.asked) == {(NAME, 1000)}


def test_a_socks_proxy_without_pysocks_is_a_mistake_that_says_what_to_install(tmp_path):
    absent = "import sys; sys.modules['socks'] = None; from btcpay.cli.main import main; main()"
    words = [sys.executable, "-c", absent, "check"]
    for url in ("socks5h://127.0.0.1:9050", "http://127.0.0.1:9"):
        environ = clean_environ(PYTHONPATH=str(PROJECT), BLOCKTILL_PROXY=url)
        ended = subprocess.run(
            words, env=environ, cwd=tmp_path, capture_output=True, text=True
        )
        said = (
            "BLOCKTILL_PROXY accepts socks5h:// only with PySocks: "
            "pip install --require-hashes -r"
        )
        assert (ended.returncode == 2, said in ended.stderr) == (
            ("socks5h" in url),
        ) * 2
