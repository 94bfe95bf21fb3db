"""Answers of an explorer to each question, and those that are not believed; on a real socket."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from btcpay.bitcoin.header import parse_header
from btcpay.chain.explorers.answers import (
    MAX_COINS,
    MAX_HEADERS_BYTES,
    MAX_PAGE_BYTES,
    ShownHeader,
)
from btcpay.chain.explorers.endpoint import FEW_COINS, MOST_COINS, REQUEST_TIMEOUT_S
from btcpay.chain.explorers.esplora import RAW_BLOCK_TIMEOUT_S, Esplora
from btcpay.http import http_client
from btcpay.settlement.values import SeenOutput
from btcpay.values.errors import FetchError
from btcpay.values.networks import NETWORKS
from tests.support.fake_esplora import (
    ADDRESS,
    SCRIPT,
    FakeEsplora,
    Json,
    Reply,
    block_view,
    say,
    truncated,
    tx_of,
)
from tests.support.paths import VECTORS

HEX = SCRIPT.hex()
OTHER = "0014" + "11" * 20
UNKNOWN = "ab" * 32
PUBLISHED: dict[str, Any] = json.loads(
    (VECTORS / "esplora.json").read_text(encoding="utf-8")
)
HTML = "<!doctype html><title>Just a moment...</title>"


class Heard(http_client.Session):
    """Notes the time-out of each call."""

    def __init__(self):
        super().__init__()
        self.timeouts: list[float] = []

    def get(self, url, timeout_s, *others):
        self.timeouts.append(timeout_s)
        return super().get(url, timeout_s, *others)


@pytest.fixture
def explorer(first):
    return asking(first)


def asking(first, session=None, network="regtest"):
    session = session or http_client.Session()
    return Esplora(NETWORKS[network], first.root, session, None, lambda _headers: None)


def refused(server, answer, ask, why=None):
    """Whoever asks does not believe this answer, a reply or what is to be said."""
    server.instead = lambda _: answer if callable(answer) else say(answer)
    with pytest.raises(FetchError, match=why):
        ask()


HEIGHTS = [("0", 0), ("1000", 1000), (" 1000\n", 1000), ("100000000", 100_000_000)]
NO_HEIGHTS = [
    "",
    "-1",
    "1.5",
    "1e3",
    "0x10",
    "\u0661",
    "null",
    "100000001",
    "9" * 400,
    HTML,
    "1 2",
]
NO_HASHES = [
    "",
    "0",
    "AB" * 32,
    "ab" * 31,
    "ab" * 33,
    "xy" * 32,
    f'"{UNKNOWN}"',
    "null",
    HTML,
]


def test_the_tip_has_a_height_and_anything_else_is_none(first, explorer):
    for text, height in HEIGHTS:
        first.instead = lambda _, text=text: say(text)
        assert explorer.tip_height() == height
    assert set(first.asked) == {"/blocks/tip/height"}
    for text in NO_HEIGHTS:
        refused(first, text, explorer.tip_height, "no height")


def test_the_tip_and_every_height_have_a_hash_and_anything_else_is_none(
    first, explorer
):
    assert explorer.tip_hash() == explorer.block_hash(1000) == first.block_at(1000).hash
    assert first.asked == ["/blocks/tip/hash", "/block-height/1000"]
    for text in NO_HASHES:
        for ask in (explorer.tip_hash, lambda: explorer.block_hash(7)):
            refused(first, text, ask, "no block hash")


def test_a_header_is_the_one_of_its_hash_and_anything_else_is_none(first, explorer):
    block = first.block_at(1000)
    assert explorer.header(block.hash) == block.header
    for body in ("", "00" * 80, "00" * 79, "xy" * 80, HTML):
        refused(first, body, lambda: explorer.header(block.hash), "header")


def views(first, *heights):
    """Blocks as a page shows them."""
    return [block_view(first.block_at(height), height) for height in heights]


def test_the_newest_headers_ascend_to_the_tip_and_link(first, explorer):
    shown = explorer.headers(None)
    assert first.asked == ["/blocks"]
    assert shown == [
        ShownHeader(at, first.block_at(at).header) for at in range(991, 1001)
    ]
    parsed = [parse_header(header.raw) for header in shown]
    assert [header.previous for header in parsed[1:]] == [
        header.hash for header in parsed[:-1]
    ]


@pytest.mark.parametrize(
    "name",
    [pytest.param("previousblockhash", id="null"), pytest.param("gone", id="absent")],
)
def test_the_first_block_has_nothing_before_it(first, explorer, name):
    first.tip = 3
    page = views(first, 3, 2, 1, 0)
    page[-1] = {
        ("gone" if key == name else key): value for key, value in page[-1].items()
    }
    first.instead = lambda _: say(page)
    first, *_, last = explorer.headers(None)
    assert parse_header(first.raw).hash == NETWORKS["regtest"].genesis_hash
    assert (first.height, last.height) == (0, 3)


def test_a_page_as_mempool_space_shows_it_is_read(first, explorer):
    extras = {
        "reward": 1.5,
        "coinbaseRaw": "ab" * 100,
        "pool": {"name": "x"},
        "feeRange": [1] * 7,
    }
    page = [
        view | {"extras": extras, "stale": False}
        for view in views(first, *range(1000, 985, -1))
    ]
    first.instead = lambda _: say(page)
    assert [header.height for header in explorer.headers(None)] == list(
        range(986, 1001)
    )


def test_the_order_on_a_page_does_not_matter(first, explorer):
    truth = explorer.headers(None)
    page = views(first, *range(1000, 990, -1))
    for other in (page[::-1], page[5:] + page[:5]):
        first.instead = lambda _, other=other: say(other)
        assert explorer.headers(None) == truth


def changed(value, changes):
    return {key: it for key, it in (value | changes).items() if it != "absent"}


def at(place, changes):
    """The page with one entry changed, or all."""
    return lambda page: [
        changed(view, changes) if place in (n, "all") else view
        for n, view in enumerate(page)
    ]


def text_of(page, old, new):
    text = json.dumps(page)
    assert old in text
    return text.replace(old, new)


BROKEN_PAGES: dict[str, Callable[[list[Json]], Any]] = {
    "no headers": lambda page: [],
    "an object": lambda page: {"blocks": page},
    "null": lambda page: None,
    "texts": lambda page: [view["id"] for view in page],
    "lists": lambda page: [[view] for view in page],
    "half of it": lambda page: json.dumps(page)[:500],
    "a web page": lambda page: HTML,
    "a hole": lambda page: page[:4] + page[5:],
    "one twice": lambda page: [page[0], *page],
    "all twice": lambda page: page * 2,
    "a fork": lambda page: [page[0], page[1] | {"id": UNKNOWN}, *page[2:]],
    "all one too low": lambda page: [
        view | {"height": view["height"] - 1} for view in page
    ],
    "the same height": at("all", {"height": 1000}),
    "a hash in capitals": lambda page: [
        view | {"id": view["id"].upper()} for view in page
    ],
    "a height of a thousand digits": at(0, {"height": 10**1000}),
    "a height of too many digits": lambda page: text_of(page, "1000", "9" * 5000),
    "two nonces, of which the last counts": lambda page: text_of(
        page, '"nonce":', '"nonce": 5, "nonce": 6, "none":'
    ),
    "too deep": lambda page: "[" * 100_000,
    **{name: at(*change) for name, change in PUBLISHED["no headers"].items()},
}


@pytest.mark.parametrize("name", BROKEN_PAGES)
def test_a_page_that_is_no_chain_is_not_believed(first, explorer, name):
    page = BROKEN_PAGES[name](views(first, *range(1000, 990, -1)))
    refused(first, page, lambda: explorer.headers(1000))


def test_two_chains_are_no_chain(first, explorer):
    """Each header is its hash's; either the heights or the links follow each other."""
    with FakeEsplora() as other:
        other.block_time -= 7
        two = views(first, *range(1000, 995, -1)) + views(other, *range(995, 990, -1))
    apart = [
        view | {"height": view["height"] * 2 - 1000} for view in views(first, 1000, 999)
    ]
    for page in (two, apart):
        refused(first, page, lambda: explorer.headers(1000), "no chain")


def test_a_page_of_headers_has_a_megabyte_at_most_and_a_block_four(first, explorer):
    page = json.dumps(views(first, 1000)).encode().ljust(MAX_HEADERS_BYTES)
    for body, ask, read in (
        (page, lambda: explorer.headers(1000), 1),
        (bytes(4_000_000), lambda: explorer.raw_block(UNKNOWN), 4_000_000),
    ):
        first.instead = lambda _, body=body: say(body)
        assert len(ask()) == read
        refused(first, body + b" ", ask, f"more than {len(body)} bytes")


def test_a_block_comes_whole_and_has_more_time_than_other_answers(first):
    session = Heard()
    explorer = asking(first, session)
    block = first.block_at(1000)
    assert explorer.raw_block(block.hash) == block.raw
    explorer.tip_height()
    assert first.asked[0] == f"/block/{block.hash}/raw"
    assert session.timeouts == [RAW_BLOCK_TIMEOUT_S, REQUEST_TIMEOUT_S] == [60, 20]


def chunked(*pieces):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def sent(raw):
    """These bytes, head and all, and the connection is closed."""

    def reply(handler):
        handler.close_connection = True
        handler.wfile.write(raw)

    return reply


BROKEN_OFF: dict[str, Reply] = {
    "one byte short": truncated(b"a" * 300_000),
    "4 GB announced, and more than a block sent": say(b"a" * 4_000_001, **{"Content-Length":
        str(2**32), "Connection": "close"}),
    "chunks without the last": sent(chunked(b"a" * 1000, b"b" * 1000)),
    "a chunk that is cut": sent(chunked(b"a" * 1000, b"b" * 1000)[:-500]),
    "a length that is none": sent(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_OFF)
def test_a_block_that_breaks_off_is_no_answer(first, explorer, name):
    refused(first, BROKEN_OFF[name], lambda: explorer.raw_block(UNKNOWN))


def test_what_came_is_counted_whole_or_not(first, explorer):
    sizes = [len(first.block_at(1000).raw), len("1000")]
    explorer.raw_block(first.block_at(1000).hash)
    explorer.tip_height()
    assert explorer.bytes_read == sum(sizes)
    refused(first, truncated(b"a" * 500), lambda: explorer.raw_block(UNKNOWN))
    first.instead = lambda _: sent(chunked(b"b" * 70, b""))
    explorer.raw_block(UNKNOWN)
    assert (explorer.bytes_read, explorer.calls) == (sum(sizes) + 500 + 70, 4)


def waiting_txs(number):
    return [tx_of(each, SCRIPT) for each in range(1, number + 1)]


def seen(explorer):
    """The numbers of the transactions that wait."""
    return [
        int(output.txid, 16) for output in explorer.mempool(ADDRESS, SCRIPT).outputs
    ]


@pytest.mark.parametrize(
    "fields, feerate",
    [
        ({"fee": 211, "weight": 561}, 1_504),
        ({"fee": 0, "weight": 561}, 0),
        ({"fee": 211}, None),
        ({"weight": 561}, None),
        ({"fee": 211, "weight": 0}, None),
        ({"fee": 211, "weight": 4_000_001}, None),
        ({"fee": -1, "weight": 561}, None),
        ({"fee": 21_000_001 * 100_000_000, "weight": 561}, None),
        ({"fee": "211", "weight": 561}, None),
        ({"fee": True, "weight": 561}, None),
        ({"fee": 211.5, "weight": 561}, None),
        ({"fee": None, "weight": []}, None),
    ],
    ids=str,
)
def test_a_fee_is_told_where_the_explorer_says_it_and_never_refuses_money(
    first, explorer, fields, feerate
):
    first.histories[ADDRESS] = [tx_of(1, SCRIPT, 1234, **fields)]
    (output,) = explorer.mempool(ADDRESS, SCRIPT).outputs
    assert (output.amount_sats, output.feerate) == (1234, feerate)


def test_what_waits_is_told_with_what_it_spends(first, explorer):
    spends = [{"txid": UNKNOWN, "vout": n, "is_coinbase": False} for n in (3, 0)]
    first.histories[ADDRESS] = [tx_of(1, SCRIPT, 1234, vin=spends)]
    mempool = explorer.mempool(ADDRESS, SCRIPT)
    inputs = (f"{UNKNOWN}:3", f"{UNKNOWN}:0")
    assert mempool.outputs == [SeenOutput(f"{1:064x}", 0, 1234, inputs=inputs)]
    assert mempool.is_whole and first.asked == [f"/address/{ADDRESS}/txs/mempool"]


@pytest.mark.parametrize(
    ("txs", "is_whole"), [(24, True), (25, False), (50, False), (51, False)]
)
def test_a_list_of_25_may_be_cut(first, explorer, txs, is_whole):
    first.histories[ADDRESS] = waiting_txs(txs)
    mempool = explorer.mempool(ADDRESS, SCRIPT)
    assert (len(mempool.outputs), mempool.is_whole) == (min(txs, 50), is_whole)


def test_what_is_in_a_block_meanwhile_waits_no_more_and_counts_for_the_lists_length(
    first, explorer
):
    page = [*waiting_txs(24), tx_of(25, SCRIPT, height=1000)]
    first.instead = lambda _: say(page)
    mempool = explorer.mempool(ADDRESS, SCRIPT)
    assert (len(mempool.outputs), mempool.is_whole) == (24, False)


def test_a_transaction_that_is_listed_twice_waits_once(first, explorer):
    first.histories[ADDRESS] = waiting_txs(2) * 2
    assert seen(explorer) == [1, 2]


@pytest.mark.parametrize(("inputs", "kept"), [(1, 1), (100, 100), (101, 0), (500, 0)])
def test_of_at_most_a_hundred_inputs_is_told_what_they_spend(
    first, explorer, inputs, kept
):
    spends = [{"txid": f"{n:064x}", "vout": n} for n in range(inputs)]
    first.histories[ADDRESS] = [tx_of(1, SCRIPT, vin=spends)]
    (output,) = explorer.mempool(ADDRESS, SCRIPT).outputs
    assert output.inputs == tuple(f"{n:064x}:{n}" for n in range(kept))


def test_only_outputs_to_the_script_count_and_none_of_zero_satoshis(first, explorer):
    outputs = [
        {"scriptpubkey": OTHER, "value": 5},
        {"scriptpubkey": HEX, "value": 6},
        {"scriptpubkey": HEX, "value": 0},
        {"scriptpubkey": HEX + "00", "value": 7},
        {"scriptpubkey": HEX, "value": 8},
    ]
    first.histories[ADDRESS] = [tx_of(1, SCRIPT, vout=outputs), tx_of(2, OTHER)]
    found = explorer.mempool(ADDRESS, SCRIPT).outputs
    assert [(output.vout, output.amount_sats) for output in found] == [(1, 6), (4, 8)]


def test_amounts_up_to_all_the_bitcoin_there_can_be_are_believed(first, explorer):
    for sats in (1, 2_100_000_000_000_000):
        first.histories[ADDRESS] = [tx_of(1, SCRIPT, sats)]
        (output,) = explorer.mempool(ADDRESS, SCRIPT).outputs
        assert output.amount_sats == sats
    first.histories[ADDRESS] = [tx_of(n, SCRIPT, 1_100_000_000_000_000) for n in (1, 2)]
    with pytest.raises(FetchError, match="more money than can exist"):
        explorer.mempool(ADDRESS, SCRIPT)


GOOD = tx_of(1, SCRIPT)


def damaged(**changes):
    return [changed(GOOD, changes)]


# Answers that are no list of transactions, whatever is asked of it.
NO_TRANSACTIONS: dict[str, Any] = {
    **{name: text.encode("latin-1") for name, text in PUBLISHED["no lists"].items()},
    "too deep": "[" * 100_000,
    "a number of too many digits": "[" + "9" * 5000 + "]",
    **{
        name: damaged(**changes)
        for name, changes in PUBLISHED["no transactions"].items()
    },
}
# And what is not looked at but when it waits.
NO_MONEY = {name: damaged(**changes) for name, changes in PUBLISHED["no money"].items()}


@pytest.mark.parametrize("name", NO_TRANSACTIONS | NO_MONEY)
def test_what_is_no_mempool_is_not_believed(first, explorer, name):
    answer = (NO_TRANSACTIONS | NO_MONEY)[name]
    refused(first, answer, lambda: explorer.mempool(ADDRESS, SCRIPT))


@pytest.mark.parametrize("name", NO_TRANSACTIONS)
def test_what_is_no_history_is_not_believed(first, explorer, name):
    explorer.require_network()
    refused(first, NO_TRANSACTIONS[name], lambda: explorer.is_used(ADDRESS))


def test_a_page_with_large_witnesses_or_payouts_to_thousands_is_believed(
    first, explorer
):
    """Megabytes, all but the last of which pays others."""
    large = {
        "txid": f"{99:064x}",
        "vout": 0,
        "is_coinbase": False,
        "witness": ["ab" * 180_000],
    }
    other = {"scriptpubkey": OTHER, "scriptpubkey_type": "v0_p2wpkh", "value": 21_000}
    paid = [*([other] * 3_000), {"scriptpubkey": HEX, "value": 5}]
    for txs, change in ((30, {"vin": [large]}), (3, {"vout": paid})):
        first.instead = lambda _, n=txs, change=change: say(
            [t | change for t in waiting_txs(n)]
        )
        assert seen(explorer) == list(range(1, txs + 1))


def test_a_value_that_was_cut_is_none_that_is_looked_for(first, explorer):
    first.histories[ADDRESS] = damaged(
        vout=[{"scriptpubkey": HEX + "00" * 100, "value": 1}]
    )
    assert seen(explorer) == []
    number = b"[" + b"1" * 70_000 + b"]"
    refused(first, number, lambda: explorer.mempool(ADDRESS, SCRIPT))


def test_an_oversized_page_is_left_before_it_fills_the_memory(first, explorer):
    explorer.require_network()
    page = b"[" + b" " * MAX_PAGE_BYTES + b"]"
    for ask in (
        lambda: explorer.mempool(ADDRESS, SCRIPT),
        lambda: explorer.is_used(ADDRESS),
    ):
        refused(first, page, ask, "more than")


def test_a_page_that_would_take_much_memory_is_not_read(first, explorer):
    page = "[" + "[]," * 150_000 + "[]]"
    why = "more values than one page can hold"
    refused(first, page, lambda: explorer.mempool(ADDRESS, SCRIPT), why)


def to_us(outputs, **fields):
    return [
        tx_of(1, SCRIPT, vout=[{"scriptpubkey": HEX, "value": 330}] * outputs, **fields)
    ]


def test_an_address_has_so_many_outputs_and_inputs_and_not_one_more(first, explorer):
    first.histories[ADDRESS] = to_us(MAX_COINS - 1)  # and one input
    assert len(seen(explorer)) == MAX_COINS - 1
    first.histories[ADDRESS] = to_us(MAX_COINS)
    with pytest.raises(FetchError, match="more than 15000 outputs"):
        explorer.mempool(ADDRESS, SCRIPT)


def test_in_one_run_an_explorer_tells_of_so_many_outputs_beyond_a_few_an_address(
    first, explorer
):
    each = 10_000 + FEW_COINS
    first.histories[ADDRESS] = to_us(each - 1)
    for _ in range(MOST_COINS // 10_000):
        assert len(seen(explorer)) == each - 1
    with pytest.raises(FetchError, match="more than 30000 outputs in one run"):
        seen(explorer)
    first.histories[ADDRESS] = waiting_txs(3)
    assert seen(asking(first)) == [1, 2, 3]


def test_what_pays_others_is_not_kept_whatever_it_spends(first, explorer):
    spends = [{"txid": f"{n:064x}", "vout": 0} for n in range(90)]
    first.histories[ADDRESS] = [
        tx_of(number, OTHER, vin=spends) for number in range(50)
    ]
    for _ in range(20):
        assert seen(explorer) == []
