"""A host is reached by whichever of its addresses answers, and what swallows costs a moment."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from btcpay.http.connector import connect_first, interleave_families
from tests.support.browser import lack
from tests.support.builders import clean_environ
from tests.support.paths import GONE, PROJECT
from tests.support.serving import Listening

STREAM = (socket.SOCK_STREAM, 6, "")
V6 = socket.AF_INET6
V4 = socket.AF_INET


def address(place, port):
    if ":" in place:
        return (V6, *STREAM, (place, port, 0, 0))
    return (V4, *STREAM, (place, port))


@contextlib.contextmanager
def swallowing(place="::1", port=0):
    """A port whose queue is full: what is sent to it to connect is swallowed."""
    with contextlib.ExitStack() as stack:
        family = V6 if ":" in place else V4
        listener = stack.enter_context(socket.socket(family))
        listener.bind((place, port))
        listener.listen(0)
        for _ in range(20):
            client = stack.enter_context(socket.socket(family))
            client.settimeout(0.5)
            try:
                client.connect(listener.getsockname()[:2])
            except TimeoutError:
                yield listener.getsockname()[1]
                return
        pytest.fail("its queue has no end")


ORDERS = {
    "both families, the resolver's first one first": ("6644", "6464"),
    "IPv4 first": ("4466", "4646"),
    "more of one family": ("66644", "64646"),
    "one family": ("444", "444"),
    "none": ("", ""),
}


@pytest.mark.parametrize("case", ORDERS)
def test_families_are_tried_by_turns(case):
    found, tried = ORDERS[case]
    addresses = [
        address(f"2001:db8::{at}" if family == "6" else f"192.0.2.{at}", 1)
        for at, family in enumerate(found)
    ]
    ordered = interleave_families(addresses)
    assert "".join("6" if one[0] == V6 else "4" for one in ordered) == tried
    for family in (V6, V4):
        own = [one for one in addresses if one[0] == family]
        assert [one for one in ordered if one[0] == family] == own


def test_an_address_that_swallows_everything_does_not_keep_the_next_one_waiting():
    with swallowing() as dead, socket.create_server(("127.0.0.1", 0)) as alive:
        port = alive.getsockname()[1]
        began_s = time.monotonic()
        addresses = [
            address("::1", dead),
            address("::1", dead),
            address("127.0.0.1", port),
        ]
        with connect_first(addresses, 60) as connected:
            assert connected.getpeername() == ("127.0.0.1", port)
            assert 0 < connected.gettimeout() <= 60
        assert time.monotonic() - began_s < 30


def test_where_none_answers_the_time_has_an_end():
    with swallowing() as dead:
        began_s = time.monotonic()
        with pytest.raises(TimeoutError):
            connect_first([address("::1", dead)] * 3, 1)
        assert time.monotonic() - began_s < 30


def test_the_error_is_that_of_the_first_address_that_refused():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refusing = address("127.0.0.1", closed.getsockname()[1])
        with pytest.raises(ConnectionRefusedError):
            connect_first([refusing, refusing], 30)
    with pytest.raises(OSError, match="no address"):
        connect_first([], 30)


def test_connections_that_came_second_are_closed():
    with swallowing() as dead, socket.create_server(("127.0.0.1", 0)) as alive:
        before = len(os.listdir("/proc/self/fd"))
        addresses = [address("::1", dead), address("127.0.0.1", alive.getsockname()[1])]
        connect_first(addresses, 60).close()
        assert len(os.listdir("/proc/self/fd")) == before


# Each way out, to a host whose IPv6 swallows what it is sent.
WAYS_OUT = {
    "a price source": """
from btcpay.http.http_client import Session
from btcpay.prices.tickers import fetch_price
from btcpay.settings.ticker_settings import PriceSource
source = PriceSource(f"http://both.example:{port}/price", "/usd")
print(fetch_price(Session(), source, lambda _at: None))
""",
    "a webhook": """
from btcpay.http.http_client import Session
print(Session().post(f"http://both.example:{port}/", 10, b"{}", {}, 10)[0])
""",
    "the mail server": """
from btcpay.notify.mail.replies import USUAL
from btcpay.notify.mail.smtp import NoSession, open_session
from btcpay.settings.mail_settings import MailServer
try:
    open_session(MailServer("both.example", port, False, "", ""), "shop.example", USUAL)
except NoSession as error:
    print(error)
""",
    "a peer": """
from btcpay.parts.peers.connection import Connection
from btcpay.values.errors import FetchError, ProofFailed
from btcpay.values.networks import NETWORKS
try:
    Connection(NETWORKS["regtest"], f"both.example:{port}", lambda _size: None)
except (FetchError, ProofFailed) as error:
    print(error)
""",
}


class Garbled(Listening):
    """Answers each client with bytes that no protocol has, and counts them."""

    met = 0

    def meet(self, client):
        self.met += 1
        client.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"usd": 97000}\r\n')
        client.shutdown(socket.SHUT_WR)
        while client.recv(1000):
            pass


@pytest.mark.parametrize(
    "way", [way for way in WAYS_OUT if way != "a peer" or "peers" not in GONE]
)
def test_every_way_out_reaches_a_host_whose_ipv6_swallows_what_it_is_sent(
    tmp_path, way
):
    unshare = shutil.which("unshare")
    if not unshare:
        lack("needs unshare")
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n::1 both.example\n127.0.0.1 both.example\n")
    enter = 'mount --bind "$1" /etc/hosts; shift; exec "$@"'
    words = [unshare, "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    words += ["sh", "-ec", enter, "sh", str(hosts), sys.executable, "-c"]
    with Garbled() as server:
        port = int(server.place.rpartition(":")[2])
        with swallowing("::1", port):
            script = f"port = {port}\n{WAYS_OUT[way]}"
            environ = clean_environ(PYTHONPATH=str(PROJECT))
            ended = subprocess.run(
                [*words, script], env=environ, capture_output=True, text=True
            )
        assert ended.returncode == 0, ended.stderr
        assert server.met == 1, ended.stdout
