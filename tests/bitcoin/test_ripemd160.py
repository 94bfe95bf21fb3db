"""RIPEMD-160 by its authors' vectors, with OpenSSL's and without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcpay.bitcoin import ripemd160 as module
from btcpay.bitcoin.ripemd160 import ripemd160, ripemd160_in_python

# https://homes.esat.kuleuven.be/~bosselae/ripemd160.html
PUBLISHED = [
    (b"", "9c1185a5c5e9fc54612808977ee8f548b2258d31"),
    (b"a", "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe"),
    (b"abc", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
    (b"message digest", "5d0689ef49d2fae572b881b123a85ffa21595f36"),
    (b"abcdefghijklmnopqrstuvwxyz", "f71c27109c692c1b56bbdceb5b9d2865b3708dbc"),
    (
        b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "12a053384a9c0c88e405a06c27dcf49ada62eb2b",
    ),
    (
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "b0e20b6e3116640286ed3a87a5713079b21f5189",
    ),
    (b"1234567890" * 8, "9b752e45573d4b39f4dbd3323cab82bf63326bfb"),
]


@pytest.mark.parametrize("function", [ripemd160, ripemd160_in_python])
def test_a_published_digest(function):
    for data, digest in PUBLISHED:
        assert function(data).hex() == digest, data


@given(data=st.binary(max_size=300))
def test_both_ways_agree(data):
    assert ripemd160_in_python(data) == ripemd160(data)


def test_an_openssl_without_it_is_no_obstacle(monkeypatch):
    def new(name: str, data: bytes) -> None:
        raise ValueError(f"unsupported hash type {name}")

    monkeypatch.setattr(module, "hashlib", type("Hashlib", (), {"new": staticmethod(new)}))
    assert ripemd160(b"abc").hex() == dict(PUBLISHED)[b"abc"]
