"""Where a host is, by its text."""

import pytest

from btcpay.values.hosts import is_here, is_near

HERE, NEAR, FAR = (True, True), (False, True), (False, False)


@pytest.mark.parametrize(
    ("host", "where"),
    [
        ("127.0.0.1", HERE),
        ("127.0.0.9", HERE),
        ("::1", HERE),
        ("localhost", HERE),
        ("ticker.localhost", HERE),
        ("10.0.0.5", NEAR),
        ("192.168.1.5", NEAR),
        ("172.16.0.1", NEAR),
        ("100.64.0.1", NEAR),
        ("fd00::1", NEAR),
        ("8.8.8.8", FAR),
        ("2600::1", FAR),
        ("electrs", FAR),
        ("127.1", FAR),
        ("mempool.space", FAR),
        ("localhost.example.com", FAR),
        ("notlocalhost", FAR),
        ("", FAR),
        (None, FAR),
    ],
)
def test_a_host_is_this_machine_or_in_its_network_or_far(host, where):
    assert (is_here(host), is_near(host)) == where
