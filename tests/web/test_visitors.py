"""The window in which a visitor's request counts: an IPv4 address, or a customer's IPv6 network."""

import pytest

from btcpay.web import rate_limits
from btcpay.web.admission import address_key


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        pytest.param(
            "198.51.100.7", "198.51.100.7", id="an IPv4 address is one visitor"
        ),
        pytest.param(
            "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", id="an IPv6 network is one"
        ),
        pytest.param(
            "2001:0DB8:1:2::", "2001:db8:1:2::/64", id="however it is written"
        ),
        pytest.param(
            "2001:db8:1:3::", "2001:db8:1:3::/64", id="the next network is another"
        ),
        pytest.param(
            "::ffff:198.51.100.7", "198.51.100.7", id="IPv4 on a socket of both"
        ),
        pytest.param("fe80::1%eth0", "fe80::/64", id="with the name of an interface"),
        pytest.param(
            "198.51.100.7:50123", "198.51.100.7", id="IPv4 with a port, from a proxy"
        ),
        pytest.param("[2001:db8::1]:50123", "2001:db8::/64", id="IPv6 with a port"),
        pytest.param("[2001:db8::1]", "2001:db8::/64", id="IPv6 in brackets"),
        pytest.param("unix:", "unix:", id="what is no address stays as it is"),
        pytest.param("", "unknown", id="nothing"),
        pytest.param(None, "unknown", id="none at all"),
    ],
)
def test_a_visitor_is_counted_as(address, counted):
    assert address_key(address) == counted


def test_failed_keys_of_one_ipv6_network_share_a_window(shop):
    def fail(address):
        place = {"REMOTE_ADDR": address}
        return shop.get(
            "/balance", "sk_test_wrong", environ_overrides=place
        ).status_code

    tries = [
        fail(f"2001:db8:0:1::{number:x}")
        for number in range(rate_limits.FAILED_AUTH.limit + 1)
    ]
    assert tries == [401] * rate_limits.FAILED_AUTH.limit + [429]
    assert fail("2001:db8:0:2::1") == 401


def test_pages_of_one_ipv6_network_share_a_window(shop):
    for _ in range(rate_limits.VISITS.limit):
        shop.service.limiter.hit(rate_limits.VISITS, "2001:db8:0:1::/64")

    def visit(address):
        path = f"/link/{shop.link()['id']}"
        place = {"REMOTE_ADDR": address}
        return shop.client.get(path, environ_base=place).status_code

    assert (visit("2001:db8:0:1::abcd"), visit("2001:db8:0:2::abcd")) == (429, 200)
