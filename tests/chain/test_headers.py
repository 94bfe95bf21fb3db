"""Headers that may follow ours, and those that may not, on mainnet and on a test network.

The main chain's own first headers are followed, whose every target consensus prescribes.
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from btcpay.bitcoin.header import Header, bits_of, build_header, parse_header, target_of
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.follow import Follower, add_header
from btcpay.chain.headers import check_headers, work_of
from btcpay.http import http_client
from btcpay.proofs.verify import check_header
from btcpay.values.errors import ExplorerError, ProofFailed
from btcpay.values.networks import NETWORKS
from storage.queries import blocks
from tests.support.blocks import real_headers
from tests.support.fake_esplora import Liar, say

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
        raw = build_header(
            4, previous or last.hash, "11" * 32, time or last.time, bits, nonce
        )
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
    last = parse_header(HEADERS[4031])
    first = parse_header(HEADERS[2016])
    shorter = (
        last.time - 86_400 if first_time_off_s < 0 else first.time + first_time_off_s
    )
    other = Header(first.hash, first.previous, first.merkle_root, shorter, first.bits)
    refusing = pytest.raises(ProofFailed, match="another target")
    with nullcontext() if accepts else refusing:
        check_headers(OLD_MAINNET, HEADERS[4032:4033], last, 4031, lambda _: other)


def test_a_header_that_does_not_link_is_refused_wherever_it_is():
    last = parse_header(HEADERS[0])
    refused("header 1 does not follow", OLD_MAINNET, [HEADERS[2]], last)
    refused("header 3 does not follow", OLD_MAINNET, [*HEADERS[1:3], HEADERS[4]], last)
    ours = parse_header(made(last))
    refused(
        "header 8 does not follow", REGTEST, [made(ours, previous="22" * 32)], ours, 7
    )


def test_a_header_without_the_work_that_it_claims_is_refused():
    last = parse_header(HEADERS[0])
    refused("lacks the work", REGTEST, [made(last, works=False)], last)
    lazy = build_header(1, last.hash, "11" * 32, last.time, EASIEST, 1)
    refused("lacks the work", OLD_MAINNET, [lazy], last)


def test_a_header_that_is_easier_than_its_network_allows_is_refused():
    last = parse_header(HEADERS[0])
    refused("too little difficulty", NETWORKS["mainnet"], HEADERS[1:2], last)
    refused("too little difficulty", NETWORKS["signet"], [made(last)], last)
    assert check_header(made(last), REGTEST.max_target_bits).bits == 0x207FFFFF
    one_more = bits_of(target_of(0x207FFFFF) + (1 << 239))
    refused("too little difficulty", REGTEST, [made(last, one_more)], last)


def test_a_test_networks_headers_are_linked_and_may_be_as_hard_as_they_like():
    last = parse_header(HEADERS[0])
    raws = chain(last, 2100)
    harder = made(parse_header(raws[-1]), bits_of(target_of(0x207FFFFF) // 16))
    headers = check_headers(REGTEST, [*raws, harder], last, 0, nobody)
    assert work_of(headers) == 2100 * 2 + 32


@pytest.mark.parametrize("size", [0, 79, 81])
def test_a_header_has_eighty_bytes(size):
    refused("does not decode", REGTEST, [bytes(size)], parse_header(HEADERS[0]))


HASHES = [parse_header(raw).hash for raw in HEADERS]


class RealHeaders:
    """An explorer that has the main chain up to a height, and headers alone.

    `instead`: by height, that of the header that it shows there.
    """

    def __init__(self, height, instead=None):
        self.height = height
        self.instead = instead or {}

    def __call__(self, path):
        _, kind, *rest = path.split("/")
        if kind == "blocks":
            if rest[:1] == ["tip"]:
                return say(
                    HASHES[self.height] if rest[1] == "hash" else str(self.height)
                )
            height = int(rest[0]) if rest else self.height
            if other := self.instead.get(height):
                return say([view(other) | {"height": height}])
            return say([view(each) for each in range(height, height - 10, -1)])
        if kind == "block-height":
            return say(HASHES[int(rest[0])])
        if kind == "block" and rest[1] == "header":
            return say(HEADERS[HASHES.index(rest[0])].hex())
        return None


def view(height):
    raw = HEADERS[height]
    header = parse_header(HEADERS[height])
    return {
        "id": header.hash, "height": height, "version": int.from_bytes(raw[:4], "little"),
        "timestamp": header.time, "merkle_root": header.merkle_root,
        "previousblockhash": header.previous, "nonce": int.from_bytes(raw[76:], "little"),
        "bits": header.bits,
    }  # fmt: skip


@pytest.fixture
def till(lied_to):
    return lied_to(has_begun=False)


def follow(till, *roots):
    """Follows what these explorers show of the main chain."""
    pool = Explorers(OLD_MAINNET, roots, http_client.Session(), pause=lambda _: None)
    follower = Follower(till.shop.service.db, OLD_MAINNET, pool, lambda _: None)
    follower.follow()
    return follower


def begin_at(till, height):
    add_header(till.shop.service.db, height, HEADERS[height], is_read=True)


def top(till):
    return till.shop.service.db.get(blocks.TOP).height


@pytest.mark.parametrize("tip", [4_031, 4_032, 4_033])
def test_the_first_header_of_the_period_is_fetched_at_a_retarget_alone(till, tip):
    begin_at(till, 4_030)
    till.liar.instead = RealHeaders(tip)
    follow(till, till.liar.root)
    assert top(till) == tip and till.liar.count("^/blocks/2016$") == (tip >= 4_032)


def test_a_stored_first_header_of_the_period_is_not_fetched(till):
    begin_at(till, 2_016)
    till.liar.instead = RealHeaders(4_040)
    follow(till, till.liar.root)
    assert top(till) == 4_040 and till.liar.count("^/blocks/2016$") == 0


def test_a_false_first_header_of_the_period_turns_to_the_next_explorer(
    till, open_liar, caplog
):
    begin_at(till, 4_030)
    second: Liar = open_liar(till)
    till.liar.instead = RealHeaders(4_033, {2_016: 4_000})
    second.instead = RealHeaders(4_033)
    with pytest.raises(ExplorerError, match="another target than consensus asks for"):
        follow(till, till.liar.root)
    assert top(till) == 4_030
    follow(till, till.liar.root, second.root)
    assert top(till) == 4_033 and "header 4032 has another target" in caplog.text


def test_headers_that_nobody_worked_for_are_left_at_their_first_page(till):
    """They would lead on for thousands of pages."""
    begin_at(till, 2_016)
    till.liar.instead = RealHeaders(10_000)
    worthless: list[dict[str, Any]] = []
    previous = "ab" * 32
    for height in range(2_017, 2_027):
        raw = build_header(1, previous, "11" * 32, 1_300_000_000, 0x1D00FFFF, height)
        previous = parse_header(raw).hash
        fields = {
            "id": previous,
            "height": height,
            "previousblockhash": parse_header(raw).previous,
        }
        shown = {"merkle_root": "11" * 32, "timestamp": 1_300_000_000, "nonce": height}
        worthless.append(
            view(height) | fields | shown | {"version": 1, "bits": 0x1D00FFFF}
        )
    real = till.liar.instead
    till.liar.instead = lambda path: (
        say(worthless) if path == "/blocks/2026" else real(path)
    )
    with pytest.raises(ExplorerError, match="lacks the work that it claims"):
        follow(till, till.liar.root)
    assert till.liar.count("^/blocks") == 3 and top(till) == 2_016
