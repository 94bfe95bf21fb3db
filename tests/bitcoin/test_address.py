"""Base58Check, Bech32 and Bech32m by the vectors of their BIPs; every invalid one says why."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcpay.bitcoin.address import (
    BECH32,
    address_of,
    script_of,
    segwit_decode,
    segwit_encode,
    witness_script,
)
from btcpay.bitcoin.base58 import BASE58, b58check_decode, b58check_encode
from btcpay.bitcoin.wire import DecodeError
from btcpay.values.networks import NETWORKS as ALL
from tests.support.paths import VECTORS

BIPS: dict[str, Any] = json.loads(
    (VECTORS / "bip_vectors.json").read_text(encoding="utf-8")
)
MALFORMED: dict[str, Any] = json.loads(
    (VECTORS / "malformed.json").read_text(encoding="utf-8")
)
NETWORKS = ("bc", "tb", "bcrt")
# BIP173's and BIP350's lists are of addresses of one network: a human-readable part of another is
# the caller's affair, and so is what BIP350 says of it.
OTHER_NETWORK = "Invalid human-readable part"
INVALID = [
    pytest.param(address, id=f"{address[:12]}: {reason}")
    for address, reason in BIPS["bip173_segwit_invalid"] + BIPS["bip350_segwit_invalid"]
    if reason != OTHER_NETWORK
]

# The genesis block's address, the Bitcoin wiki's example of one, and BIP49's first address.
BASE58_TEXTS = [
    (
        "0062e907b15cbf27d5425399ebf6f0fb50ebb88f18",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    ),
    (
        "0077bff20c60e522dfaa3350c39b030a5d004e839a",
        "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    ),
    (
        "c4336caa13e08b96080a32b5d818d59b4ab3b36742",
        "2Mww8dCYPUpKHofjgcXcBCEGmniw9CoaiD2",
    ),
]


@pytest.mark.parametrize(("payload", "text"), BASE58_TEXTS)
def test_a_published_payload_has_its_published_base58check_text(payload, text):
    assert b58check_encode(bytes.fromhex(payload)) == text
    assert b58check_decode(text).hex() == payload


@given(payload=st.binary(max_size=90), zeros=st.integers(0, 5))
def test_a_payload_is_read_as_it_was_written(payload, zeros):
    payload = bytes(zeros) + payload
    assert b58check_decode(b58check_encode(payload)) == payload


@given(
    payload=st.binary(min_size=21, max_size=21),
    place=st.integers(0, 24),
    other=st.sampled_from(BASE58),
)
def test_a_mistyped_character_is_noticed(payload, place, other):
    text = b58check_encode(payload)
    mistyped = text[:place] + other + text[place + 1 :]
    if mistyped != text:
        with pytest.raises(DecodeError):
            b58check_decode(mistyped)


@pytest.mark.parametrize(
    "text", MALFORMED["base58check"].values(), ids=MALFORMED["base58check"]
)
def test_what_is_no_base58check_is_malformed(text):
    with pytest.raises(DecodeError):
        b58check_decode(text)


@pytest.mark.parametrize(("address", "script"), BIPS["bip350_segwit_valid"])
def test_a_published_address_has_its_script_and_the_script_its_address(address, script):
    hrp, version, program = segwit_decode(address)
    assert hrp in NETWORKS
    assert witness_script(version, program).hex() == script
    assert segwit_encode(hrp, version, program) == address.lower()
    network = next(each for each in ALL.values() if each.bech32_hrp == hrp)
    assert script_of(address, network).hex() == script
    assert address_of(bytes.fromhex(script), network) == address.lower()


@pytest.mark.parametrize("network", ["mainnet", "regtest"])
def test_base58check_is_an_address_of_its_network_alone_and_of_20_bytes(network):
    own = {"mainnet": BASE58_TEXTS[:2], "regtest": BASE58_TEXTS[2:]}[network]
    for payload, text in BASE58_TEXTS:
        if (payload, text) in own:
            script = script_of(text, ALL[network]).hex()
            assert script in (f"76a914{payload[2:]}88ac", f"a914{payload[2:]}87")
            assert address_of(bytes.fromhex(script), ALL[network]) == text
            text = b58check_encode(bytes.fromhex(payload) + b"\x00")
        with pytest.raises(DecodeError, match="no address of this network"):
            script_of(text, ALL[network])


@pytest.mark.parametrize("address", INVALID)
def test_a_published_invalid_address_is_malformed(address):
    with pytest.raises(DecodeError):
        segwit_decode(address)


def test_an_address_of_another_network_says_of_which():
    others = [
        address
        for address, reason in BIPS["bip173_segwit_invalid"]
        + BIPS["bip350_segwit_invalid"]
        if reason == OTHER_NETWORK
    ]
    assert others
    for address in others:
        try:
            assert segwit_decode(address)[0] not in NETWORKS
        except DecodeError:
            assert address.startswith("tc1q")


@pytest.mark.parametrize(
    "address", MALFORMED["segwit"].values(), ids=MALFORMED["segwit"]
)
def test_what_is_no_segwit_address_is_malformed(address):
    with pytest.raises(DecodeError):
        segwit_decode(address)


@given(
    hrp=st.sampled_from(NETWORKS),
    version=st.integers(1, 16),
    program=st.binary(min_size=2, max_size=40),
    capitals=st.booleans(),
)
def test_an_address_is_read_as_it_was_written(hrp, version, program, capitals):
    address = segwit_encode(hrp, version, program)
    assert segwit_decode(address.upper() if capitals else address) == (
        hrp,
        version,
        program,
    )


@given(
    program=st.binary(min_size=20, max_size=20),
    places=st.lists(st.integers(3, 41), min_size=1, max_size=4, unique=True),
    others=st.lists(st.sampled_from(BECH32), min_size=4, max_size=4),
)
def test_up_to_four_mistyped_characters_are_noticed(program, places, others):
    """BIP173 promises it."""
    address = segwit_encode("bc", 0, program)
    chars = list(address)
    for place, other in zip(places, others, strict=False):
        chars[place] = other
    if "".join(chars) != address:
        with pytest.raises(DecodeError):
            segwit_decode("".join(chars))
