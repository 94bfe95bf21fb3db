"""BIP32 by its own vectors: what is invalid says why; private and public derivation agree."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcpay.bitcoin.base58 import b58check_decode
from btcpay.bitcoin.extended_key import HARDENED, ExtendedKey, InvalidChild
from btcpay.bitcoin.secp256k1 import ORDER, G
from btcpay.bitcoin.wire import DecodeError
from tests.support.hd_wallet import XPUB, HdWallet
from tests.support.paths import VECTORS

PUBLISHED: dict[str, Any] = json.loads(
    (VECTORS / "bip32.json").read_text(encoding="utf-8")
)
CHAINS = [
    pytest.param(
        bytes.fromhex(vector["seed"]), *chain, id=f"{vector['vector']}: {chain[0]}"
    )
    for vector in PUBLISHED["vectors"]
    for chain in vector["chains"]
]
SOME_KEY = HdWallet.from_seed(b"a wallet of the tests").at("m/84'/0'/0'")
PAYLOAD = SOME_KEY.serialized(XPUB)

places = st.lists(st.integers(0, HARDENED - 1), max_size=3)


@pytest.mark.parametrize(("seed", "path", "xpub", "xprv"), CHAINS)
def test_a_published_chain_is_derived_from_its_seed(seed, path, xpub, xprv):
    key = HdWallet.from_seed(seed).at(path)
    payload = b58check_decode(xpub)
    assert (key.xpub(XPUB), key.xprv()) == (xpub, xprv)
    assert ExtendedKey.parse(payload) == key.public
    above, _, index = path.rpartition("/")
    if index.isdigit():  # not hardened: derived without the private key too
        parent = ExtendedKey.parse(
            b58check_decode(HdWallet.from_seed(seed).at(above).xpub(XPUB))
        )
        assert parent.child(int(index)) == key.public


@given(seed=st.binary(min_size=16, max_size=64), hardened=places, below=places)
@settings(max_examples=200)
def test_private_and_public_derivation_agree(seed, hardened, below):
    private = HdWallet.from_seed(seed)
    for index in hardened:
        private = private.child(index + HARDENED)
    public = ExtendedKey.parse(private.serialized(XPUB))
    for index in below:
        private = private.child(index)
        public = public.child(index)
    assert public == private.public


def test_the_first_and_the_last_index_have_keys_and_none_beyond_them():
    for index in (0, HARDENED - 1):
        assert SOME_KEY.public.child(index).depth == SOME_KEY.depth + 1
    for index in (-1, HARDENED, 2**32 - 1, 2**32):
        with pytest.raises(InvalidChild, match=str(index)):
            SOME_KEY.public.child(index)


# One index of 2**127 has no key: nobody knows one, so the point is made to fail.


class Unlucky:
    """A point whose every child is invalid."""

    def format(self):
        return SOME_KEY.public.public_key

    def add(self, tweak):
        return G.add(ORDER - 1)


def test_an_index_without_a_key_is_an_error_that_names_it():
    key: Any = Unlucky()
    with pytest.raises(InvalidChild, match="index 3 has no valid key"):
        ExtendedKey(key, bytes(32)).child(3)


def changed(at, data):
    """A valid serialisation with other bytes at a place."""
    return PAYLOAD[:at] + data + PAYLOAD[at + len(data) :]


def with_key(first, x):
    return changed(45, bytes([first]) + x.to_bytes(32, "big"))


X = int.from_bytes(PAYLOAD[46:], "big")


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(b"", "0 bytes", id="nothing"),
        pytest.param(PAYLOAD[:-1], "77 bytes", id="a byte is missing"),
        pytest.param(PAYLOAD + b"\x00", "79 bytes", id="a byte too many"),
        pytest.param(changed(4, b"\x00"), "has a parent", id="no depth, a parent"),
        pytest.param(
            changed(4, bytes(5)),
            "or a child number",
            id="no depth, no parent, a child number",
        ),
        pytest.param(
            with_key(0x00, X), "no point", id="a private key, which begins with 00"
        ),
        pytest.param(
            with_key(0x02, 7), "no point", id="x is 7, as in BIP32's vector 5"
        ),
    ],
)
def test_what_bip32_calls_invalid_is_malformed(payload, reason):
    with pytest.raises(DecodeError, match=reason):
        ExtendedKey.parse(payload)
