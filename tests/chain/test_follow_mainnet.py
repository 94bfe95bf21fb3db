"""Following the main chain's own first headers, whose every target consensus prescribes."""

from dataclasses import replace
from typing import Any

import pytest
from blocks import real_headers
from fake_esplora import Liar, say

from btcpay.bitcoin.header import build_header, parse_header
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.follow import Follower, add_header
from btcpay.http import http_client
from btcpay.values.errors import ExplorerError
from btcpay.values.networks import NETWORKS
from storage.queries import blocks

# Those headers are easier than any that a shop of today accepts.
OLD_MAINNET = replace(NETWORKS["mainnet"], max_target_bits=0x1D00FFFF)
HEADERS = real_headers()
HASHES = [parse_header(raw).hash for raw in HEADERS]


class RealHeaders:
    """An explorer that has the main chain up to a height, and headers alone.

    `instead`: by height, that of the header that it shows there.
    """

    def __init__(self, height, instead=None):
        self.height, self.instead = height, instead or {}

    def __call__(self, path):
        _, kind, *rest = path.split("/")
        if kind == "blocks":
            if rest[:1] == ["tip"]:
                return say(HASHES[self.height] if rest[1] == "hash" else str(self.height))
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
    raw, header = HEADERS[height], parse_header(HEADERS[height])
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
    return till.shop.service.db.only(blocks.TOP).height


@pytest.mark.parametrize("tip", [4_031, 4_032, 4_033])
def test_the_first_header_of_the_period_is_fetched_at_a_retarget_alone(till, tip):
    begin_at(till, 4_030)
    till.liar.instead = RealHeaders(tip)
    follow(till, till.liar.root)
    assert top(till) == tip and till.liar.count("^/blocks/2016$") == (tip >= 4_032)


def test_it_is_not_asked_for_where_it_is_kept(till):
    begin_at(till, 2_016)
    till.liar.instead = RealHeaders(4_040)
    follow(till, till.liar.root)
    assert top(till) == 4_040 and till.liar.count("^/blocks/2016$") == 0


def test_a_false_first_header_of_the_period_turns_to_the_next_explorer(till, open_liar, caplog):
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
        fields = {"id": previous, "height": height, "previousblockhash": parse_header(raw).previous}
        shown = {"merkle_root": "11" * 32, "timestamp": 1_300_000_000, "nonce": height}
        worthless.append(view(height) | fields | shown | {"version": 1, "bits": 0x1D00FFFF})
    real = till.liar.instead
    till.liar.instead = lambda path: say(worthless) if path == "/blocks/2026" else real(path)
    with pytest.raises(ExplorerError, match="lacks the work that it claims"):
        follow(till, till.liar.root)
    assert till.liar.count("^/blocks") == 3 and top(till) == 2_016
