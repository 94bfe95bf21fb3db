"""Where a host is, by its text."""

from btcpay.values.hosts import is_here, is_near

HERE = ["127.0.0.1", "127.0.0.9", "::1", "localhost", "ticker.localhost"]
NEAR = ["10.0.0.5", "192.168.1.5", "172.16.0.1", "100.64.0.1", "fd00::1"]
FAR = ["8.8.8.8", "2600::1", "electrs", "127.1", "mempool.space", "localhost.example.com", ""]


def test_a_host_is_this_machine_or_in_its_network_or_far():
    hosts = [*HERE, *NEAR, *FAR, "notlocalhost", None]
    assert [host for host in hosts if is_here(host)] == HERE
    assert [host for host in hosts if is_near(host)] == HERE + NEAR
