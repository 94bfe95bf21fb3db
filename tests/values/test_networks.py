"""The networks: each one's first block; and where a host is, by its text."""

import pytest

from btcpay.bitcoin.header import target_of
from btcpay.bitcoin.wire import hash256, txid_bytes, txid_hex, u32
from btcpay.values.hosts import is_here, is_near
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
    header = u32(1) + bytes(32) + txid_bytes(root) + u32(time) + u32(bits) + u32(nonce)
    assert txid_hex(hash256(header)) == NETWORKS[name].genesis_hash


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
FAR = ["8.8.8.8", "2600::1", "electrs", "127.1", "mempool.space", "localhost.example.com", ""]


def test_a_host_is_this_machine_or_in_its_network_or_far():
    hosts = [*HERE, *NEAR, *FAR, "notlocalhost", None]
    assert [host for host in hosts if is_here(host)] == HERE
    assert [host for host in hosts if is_near(host)] == HERE + NEAR
