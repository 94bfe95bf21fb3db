"""Headers that may follow ours, and those that may not, on mainnet and on a test network."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from blocks import real_headers

from btcpay.bitcoin.header import Header, bits_of, build_header, parse_header, target_of
from btcpay.chain.follow import check_header, check_headers, work_of
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import NETWORKS

# The first headers of the main chain are easier than a header that a shop of today accepts.
EASIEST = 0x1D00FFFF
OLD_MAINNET = replace(NETWORKS["mainnet"], max_target_bits=EASIEST)
REGTEST = NETWORKS["regtest"]
HEADERS = real_headers()


def nobody(height):
    raise AssertionError(f"the header at {height} was asked for")


def made(last, bits=0x207FFFFF, time=0, previous="", works=True):
    """A header on `last`, which has the work that it claims unless told otherwise."""
    nonce = 0
    while True:
        raw = build_header(4, previous or last.hash, "11" * 32, time or last.time, bits, nonce)
        if parse_header(raw).has_work == works:
            return raw
        nonce += 1


def chain(last, count):
    raws: list[bytes] = []
    for _ in range(count):
        raws.append(made(last))
        last = parse_header(raws[-1])
    return raws


def refused(why, network, raws, last, height=0):
    with pytest.raises(ProofFailed, match=why):
        check_headers(network, raws, last, height, nobody)


def test_the_main_chains_first_headers_follow_each_other_through_every_retarget():
    asked = []

    def period_first(height):
        asked.append(height)
        return parse_header(HEADERS[height])

    first = parse_header(HEADERS[0])
    headers = check_headers(OLD_MAINNET, HEADERS[1:], first, 0, period_first)
    assert [header.hash for header in headers[:2]] == [
        "00000000839a8e6886ab5951d76f411475428afc90947ee320161bbf18eb6048",
        "000000006a625f06636b8bb6ac7b960a8d03705d1ace08b1a19da3fdcc99ddbd",
    ]
    assert asked == [0, 2016, 4032, 6048, 8064]
    assert len(headers) == len(HEADERS) - 1


@pytest.mark.parametrize("height", [0, 1, 2014, 2015, 2016, 2017, 4031])
def test_headers_of_the_main_chain_may_be_checked_from_anywhere(height):
    def lookup(at):
        assert at % 2016 == 0
        return parse_header(HEADERS[at])

    last = parse_header(HEADERS[height])
    some = HEADERS[height + 1 : height + 31]
    assert len(check_headers(OLD_MAINNET, some, last, height, lookup)) == 30


def test_on_mainnet_another_target_than_the_one_before_is_refused_within_a_period():
    # Block 1 with twice the work that is asked for: harder is wrong, too.
    last = parse_header(HEADERS[0])
    easier = replace(OLD_MAINNET, max_target_bits=0x207FFFFF)
    refused("another target", easier, [made(last, 0x207FFFFF)], last)
    refused("another target", easier, [made(last, 0x200FFFFF)], last)


@pytest.mark.parametrize(
    ("first_time_off_s", "accepts"), [(0, True), (600, True), (-14 * 86_400, False)]
)
def test_a_retarget_is_exact_so_a_false_first_header_of_the_period_refuses_it(
    first_time_off_s, accepts
):
    # At 4032 the difficulty stays 1 as the limit is met: only a much shorter period moves it.
    last, first = parse_header(HEADERS[4031]), parse_header(HEADERS[2016])
    shorter = last.time - 86_400 if first_time_off_s < 0 else first.time + first_time_off_s
    other = Header(first.hash, first.previous, first.merkle_root, shorter, first.bits)
    refusing = pytest.raises(ProofFailed, match="another target")
    with nullcontext() if accepts else refusing:
        check_headers(OLD_MAINNET, HEADERS[4032:4033], last, 4031, lambda _: other)


def test_a_header_that_does_not_link_is_refused_wherever_it_is():
    last = parse_header(HEADERS[0])
    refused("header 1 does not follow", OLD_MAINNET, [HEADERS[2]], last)
    refused("header 3 does not follow", OLD_MAINNET, [*HEADERS[1:3], HEADERS[4]], last)
    ours = parse_header(made(last))
    refused("header 8 does not follow", REGTEST, [made(ours, previous="22" * 32)], ours, 7)


def test_a_header_without_the_work_that_it_claims_is_refused():
    last = parse_header(HEADERS[0])
    refused("lacks the work", REGTEST, [made(last, works=False)], last)
    lazy = build_header(1, last.hash, "11" * 32, last.time, EASIEST, 1)
    refused("lacks the work", OLD_MAINNET, [lazy], last)


def test_a_header_that_is_easier_than_its_network_allows_is_refused():
    last = parse_header(HEADERS[0])
    refused("too little difficulty", NETWORKS["mainnet"], HEADERS[1:2], last)
    refused("too little difficulty", NETWORKS["signet"], [made(last)], last)
    assert check_header(REGTEST, made(last)).bits == 0x207FFFFF
    one_more = bits_of(target_of(0x207FFFFF) + (1 << 239))
    refused("too little difficulty", REGTEST, [made(last, one_more)], last)


@pytest.mark.parametrize("bits", [0, 0x20800001, 0xFF7FFFFF, 0x01000000])
def test_a_target_that_is_none_is_met_by_nothing(bits):
    last = parse_header(HEADERS[0])
    raw = build_header(1, last.hash, "11" * 32, last.time, bits, 1)
    refused("lacks the work", REGTEST, [raw], last)
    assert parse_header(raw).work == 0


def test_a_test_networks_headers_are_linked_and_may_be_as_hard_as_they_like():
    last = parse_header(HEADERS[0])
    raws = chain(last, 2100)
    harder = made(parse_header(raws[-1]), bits_of(target_of(0x207FFFFF) // 16))
    headers = check_headers(REGTEST, [*raws, harder], last, 0, nobody)
    assert work_of(headers) == 2100 * 2 + 32


@pytest.mark.parametrize("size", [0, 79, 81])
def test_a_header_has_eighty_bytes(size):
    refused("does not decode", REGTEST, [bytes(size)], parse_header(HEADERS[0]))
