"""The explorer client against a scriptable explorer on a real socket: paging, failing over."""

import gzip
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from btcpay.explorers.history import MAX_PAGE_BYTES, MAX_PAGES, MAX_PARTS, Block
from fake_esplora import (
    BLOCK_TIME,
    FakeEsplora,
    Reply,
    blockstream,
    dropped,
    mempool_space,
    say,
    silent,
    truncated,
    tx_of,
)

from btcpay import http_client
from btcpay.errors import ExplorerError
from btcpay.explorers.endpoint import FEW_PARTS, MOST_PARTS
from btcpay.explorers.pool import Explorers
from btcpay.networks import NETWORKS
from btcpay.times import from_unix_s

REGTEST = NETWORKS["regtest"]
ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
SCRIPT = bytes.fromhex("0014751e76e8199196d454941c45d1b3a323f1433bd6")
HEX = SCRIPT.hex()
OTHER = "0014" + "11" * 20


class Hasty(requests.Session):
    """A session that waits a fifth of a second where the client says twenty."""

    def get(self, url: Any, **kwargs: Any) -> requests.Response:
        return super().get(url, **(kwargs | {"timeout": 0.2}))


@pytest.fixture
def first() -> Iterator[FakeEsplora]:
    with FakeEsplora() as server:
        server.histories[ADDRESS] = []
        yield server


@pytest.fixture
def second() -> Iterator[FakeEsplora]:
    """The explorer behind the first; it knows one transaction of 77 satoshis."""
    with FakeEsplora() as server:
        server.histories[ADDRESS] = [tx_of(7, SCRIPT, 77, height=900)]
        yield server


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Set at the end of the test, so that no reply outlives it."""
    event = threading.Event()
    yield event
    event.set()


def client(*servers: FakeEsplora, session: requests.Session | None = None) -> Explorers:
    roots = [server.root for server in servers]
    return Explorers(REGTEST, roots, session or http_client.new_session(), pause=lambda _: None)


def found(explorers: Explorers) -> list[int]:
    """The numbers of the transactions that pay the address."""
    return [int(output.txid, 16) for output in explorers.history(ADDRESS, SCRIPT).outputs]


def history(waiting: int, confirmed: int) -> list[dict[str, Any]]:
    """Transactions numbered from 1, newest first: the waiting ones, then the confirmed."""
    count = waiting + confirmed
    return [
        tx_of(number, SCRIPT, height=None if number <= waiting else 1000 - number)
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize(
    ("waiting", "confirmed"),
    [
        pytest.param(0, 0, id="nothing"),
        pytest.param(0, 1, id="one confirmed"),
        pytest.param(1, 0, id="one waiting"),
        pytest.param(0, 24, id="one less than a page"),
        pytest.param(0, 25, id="a page exactly"),
        pytest.param(0, 26, id="one more than a page"),
        pytest.param(0, 50, id="two pages exactly"),
        pytest.param(0, 51, id="two pages and one"),
        pytest.param(50, 25, id="the fullest first page"),
        pytest.param(50, 26, id="the fullest first page and one"),
        pytest.param(3, 80, id="some waiting, four pages confirmed"),
    ],
)
@pytest.mark.parametrize(
    "paging",
    [
        pytest.param(blockstream, id="as Blockstream pages"),
        pytest.param(mempool_space, id="as mempool.space pages"),
    ],
)
def test_every_transaction_of_an_address_is_found(first, paging, waiting, confirmed):
    first.paging = paging
    first.histories[ADDRESS] = history(waiting, confirmed)
    assert found(client(first)) == list(range(1, waiting + confirmed + 1))


def test_more_waiting_ones_than_a_page_holds_are_found_where_the_explorer_continues(first):
    first.paging = mempool_space
    first.histories[ADDRESS] = history(35, 12)
    assert found(client(first)) == list(range(1, 48))
    assert any("?after_txid=" in path for path in first.asked)
    assert any("/chain/" in path for path in first.asked)


@pytest.mark.parametrize("length", [1, 5, 24])
def test_a_short_page_is_not_taken_for_the_last_one(first, length):
    first.histories[ADDRESS] = history(0, 30)
    first.paging = lambda *parts: blockstream(*parts)[:length]
    assert found(client(first)) == list(range(1, 31))


def test_only_an_empty_or_known_page_ends_the_list(first):
    first.histories[ADDRESS] = history(0, 2)
    client(first).history(ADDRESS, SCRIPT)
    assert first.asked == [f"/address/{ADDRESS}/txs", f"/address/{ADDRESS}/txs/chain/{2:064x}"]


def test_an_explorer_that_answers_the_first_page_again_is_at_its_end(first):
    first.histories[ADDRESS] = history(40, 0)
    assert found(client(first)) == list(range(1, 41))
    assert len(first.asked) == 2


def test_a_transaction_that_confirms_between_two_pages_counts_once(first):
    pages = [history(3, 0), [tx_of(3, SCRIPT, height=1000), tx_of(4, SCRIPT, height=999)], []]
    first.paging = lambda *_: pages.pop(0)
    assert found(client(first)) == [1, 2, 3, 4]


def test_an_endless_pager_is_left_after_a_bounded_number_of_pages(first, second):
    numbers = iter(range(1, 10_000))
    first.paging = lambda *_: [tx_of(next(numbers), SCRIPT, height=1)]
    assert found(client(first, second)) == [7]
    assert len(first.asked) == MAX_PAGES


GOOD = tx_of(1, SCRIPT, height=999)


def damaged(**changes: Any) -> list[dict[str, Any]]:
    return [GOOD | changes]


def without(name: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in GOOD.items() if key != name}]


def paying(value: Any, script: str = HEX) -> list[dict[str, Any]]:
    return damaged(vout=[{"scriptpubkey": script, "value": value}])


def in_block(**changes: Any) -> list[dict[str, Any]]:
    return damaged(status=GOOD["status"] | changes)


HTML = b"<!doctype html><title>Just a moment...</title>"
UNBELIEVABLE = {
    "a 500": say("oops", 500),
    "a 502 of a proxy": say(HTML, 502),
    "a 503": say("Service Unavailable", 503),
    "a 429": say("Too Many Requests", 429, **{"Retry-After": "1"}),
    "a 403": say("blocked", 403),
    "a 404: an error, not nothing": say("[]", 404),
    "a 400": say("Invalid Bitcoin address", 400),
    "a 204 without a body": say(b"", 204),
    "a 200 without a body": say(b""),
    "a 200 with HTML": say(HTML),
    "a 200 with half a JSON value": say(b'[{"txid": "'),
    "a 200 with bytes that are no text": say(b"[\xff\xfe]"),
    "JSON nested too deep": say(b"[" * 100_000),
    "a number of too many digits": say(b"[" + b"9" * 5000 + b"]"),
    "null": say(None),
    "an object": say({"error": "not found"}),
    "a list of texts": say(["ab" * 32]),
    "a body shorter than promised": truncated(b"[]"),
    "a connection that is closed": dropped,
    "a redirect in a circle": say("", 302, Location="/address/x/txs"),
    "an amount as text": say(paying("1000")),
    "a negative amount": say(paying(-1)),
    "an amount above 21 million bitcoin": say(paying(2_100_000_000_000_001)),
    "an amount with a point": say(paying(1000.0)),
    "an amount of true": say(paying(True)),
    "an amount of null": say(paying(None)),
    "an output without script": say(damaged(vout=[{"value": 1}])),
    "a script that is no hex": say(paying(1000, "xy")),
    "no txid": say(without("txid")),
    "a txid of another length": say(damaged(txid="ab" * 31)),
    "a txid with a line break": say(damaged(txid="ab" * 32 + "\n")),
    "a txid that leads elsewhere": say(damaged(txid="../" * 21 + "a")),
    "no inputs": say(without("vin")),
    "no outputs": say(without("vout")),
    "no status": say(without("status")),
    "confirmed as text": say(in_block(confirmed="yes")),
    "confirmed without a height": say(in_block(block_height=None)),
    "confirmed without a hash": say(in_block(block_hash=None)),
    "confirmed without a time": say(in_block(block_time=None)),
    "confirmed without any block": say(damaged(status={"confirmed": True})),
    "a negative height": say(in_block(block_height=-1)),
    "a height as text": say(in_block(block_height="999")),
    "a block time beyond what headers hold": say(in_block(block_time=2**32)),
    "a block hash of another length": say(in_block(block_hash="00")),
    "an input without txid": say(damaged(vin=[{"vout": 0}])),
}


@pytest.mark.parametrize("reply", [pytest.param(r, id=name) for name, r in UNBELIEVABLE.items()])
def test_what_cannot_be_believed_is_asked_of_the_next_explorer(first, second, reply: Reply):
    first.instead = lambda _: reply
    assert found(client(first, second)) == [7]


@pytest.mark.parametrize("reply", [pytest.param(r, id=name) for name, r in UNBELIEVABLE.items()])
def test_what_cannot_be_believed_is_an_error_when_nobody_else_can_be_asked(first, reply: Reply):
    first.instead = lambda _: reply
    with pytest.raises(ExplorerError, match=r"127\.0\.0\.1"):
        client(first).history(ADDRESS, SCRIPT)


def test_the_undamaged_transaction_is_believed(first):
    first.histories[ADDRESS] = [GOOD]
    assert found(client(first)) == [1]


@pytest.mark.parametrize("sats", [1, 2_100_000_000_000_000])
def test_amounts_up_to_all_the_bitcoin_there_can_be_are_believed(first, sats):
    first.histories[ADDRESS] = paying(sats)
    assert [o.amount_sats for o in client(first).history(ADDRESS, SCRIPT).outputs] == [sats]


def test_an_oversized_answer_is_left_before_it_fills_the_memory(first, second):
    first.instead = lambda _: say(b"[" + b" " * MAX_PAGE_BYTES + b"]")
    assert found(client(first, second)) == [7]


def test_an_oversized_answer_that_was_compressed_small_is_left_too(first, second):
    packed = gzip.compress(b" " * (MAX_PAGE_BYTES + 1))
    first.instead = lambda _: say(packed, **{"Content-Encoding": "gzip"})
    assert found(client(first, second)) == [7]


def long_page(*txs: dict[str, Any], more: dict[str, Any]) -> Reply:
    """A page of these, each with what concerns nobody."""
    return say([tx | more for tx in txs])


def test_a_page_with_large_witnesses_is_believed_though_it_is_megabytes(first):
    script_asm = "OP_PUSHBYTES_75 " + "ab" * 75
    large = {"txid": f"{99:064x}", "vout": 0, "is_coinbase": False, "witness": ["ab" * 90_000]}
    inputs = [large | {"inner_witnessscript_asm": " ".join([script_asm] * 1_200)}]
    pages = [long_page(*history(5, 25), more={"vin": inputs}), say([])]
    first.instead = lambda _: pages.pop(0)
    assert found(client(first)) == list(range(1, 31))


def test_a_page_of_payouts_to_thousands_is_believed(first):
    other = {
        "scriptpubkey": OTHER,
        "scriptpubkey_asm": f"OP_0 OP_PUSHBYTES_20 {OTHER[4:]}",
        "scriptpubkey_type": "v0_p2wpkh",
        "scriptpubkey_address": "bc1qzyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg37s5k0c",
        "value": 21_000,
    }
    payout = GOOD | {"vout": [*([other] * 3_000), {"scriptpubkey": HEX, "value": 5}]}
    pages = [say([payout | {"txid": f"{n:064x}"} for n in range(1, 4)]), say([])]
    first.instead = lambda _: pages.pop(0)
    assert found(client(first)) == [1, 2, 3]


def test_a_value_that_was_cut_is_none_that_is_looked_for(first, second):
    longer = HEX + "00" * 100
    first.histories[ADDRESS] = [GOOD | {"vout": [{"scriptpubkey": longer, "value": 1}]}]
    assert found(client(first)) == []
    first.instead = lambda _: say(b"[" + b"1" * 70_000 + b"]")
    assert found(client(first, second)) == [7]


@pytest.mark.parametrize(
    ("outputs", "numbers"), [(MAX_PARTS - 1, [1] * (MAX_PARTS - 1)), (MAX_PARTS, [7])]
)
def test_an_address_has_so_many_outputs_and_not_one_more(first, second, outputs, numbers):
    paid = [{"scriptpubkey": HEX, "value": 330}] * outputs
    first.histories[ADDRESS] = [GOOD | {"vout": paid, "vin": []}]
    assert found(client(first, second)) == numbers


def test_in_one_run_an_explorer_tells_of_so_many_outputs_beyond_a_few_an_address(first, second):
    each = 10_000 + FEW_PARTS
    paid = [{"scriptpubkey": HEX, "value": 330}] * (each - 1)
    first.histories[ADDRESS] = [GOOD | {"vout": paid, "vin": []}]
    explorers = client(first, second)
    for _ in range(MOST_PARTS // 10_000):
        assert len(found(explorers)) == each - 1
    assert found(explorers) == [7]
    first.histories[ADDRESS] = history(0, 3)
    assert found(client(first, second)) == [1, 2, 3]


def test_what_another_script_spends_is_not_kept(first):
    ours, others = ({"prevout": {"scriptpubkey": script}} for script in (HEX, OTHER))
    spending = {"txid": f"{3:064x}", "is_coinbase": False}
    inputs = [spending | {"vout": 0} | ours, *([spending | {"vout": 1} | others] * 8_000)]
    first.paging = lambda history, _path, _query, last: history[int(last or "0", 16) :][:1]
    first.histories[ADDRESS] = [
        tx_of(1, OTHER, height=999, vin=inputs),
        tx_of(2, OTHER, height=999, vin=inputs[1:]),
        tx_of(3, SCRIPT, 1234, height=990),
    ]
    assert [o.spent_height for o in client(first).history(ADDRESS, SCRIPT).outputs] == [999]


def test_an_explorer_that_never_answers_is_left_after_the_time_out(first, second, released):
    first.instead = lambda _: silent(released)
    assert found(client(first, second, session=Hasty())) == [7]


def test_a_closed_port_is_left_for_the_next_explorer(second):
    explorers = Explorers(REGTEST, ["http://127.0.0.1:9", second.root], http_client.new_session())
    assert found(explorers) == [7]


def test_a_history_that_breaks_in_the_middle_is_asked_whole_of_the_next_explorer(first, second):
    first.histories[ADDRESS] = history(0, 30)
    first.instead = lambda path: say("oops", 500) if "/chain/" in path else None
    assert found(client(first, second)) == [7]


def test_when_all_fail_the_error_says_why_of_each(first, second):
    first.instead = lambda _: say("oops", 500)
    second.instead = lambda _: say(HTML)
    with pytest.raises(ExplorerError, match="no JSON.*HTTP 500"):
        client(first, second).history(ADDRESS, SCRIPT)


def test_neither_the_error_nor_the_log_holds_an_endpoints_credentials(first, caplog):
    first.instead = lambda _: say("oops", 500)
    root = first.root.replace("http://", "http://user:hunter2@")
    with pytest.raises(ExplorerError) as caught:
        Explorers(REGTEST, [root], http_client.new_session()).history(ADDRESS, SCRIPT)
    assert "hunter2" not in str(caught.value) + caplog.text


def test_an_explorer_that_failed_goes_to_the_back_until_the_next_one_fails(first, second):
    explorers = client(first, second)
    first.histories[ADDRESS] = [tx_of(1, SCRIPT)]
    first.instead = lambda _: say("oops", 500)
    assert found(explorers) == [7]
    first.instead = lambda _: None
    asked = len(first.asked)
    assert found(explorers) == [7] and len(first.asked) == asked
    second.instead = lambda _: say("oops", 500)
    assert found(explorers) == [1]


@pytest.mark.parametrize("status", [400, 404])
def test_an_explorer_that_does_not_know_one_address_keeps_its_place(first, second, status):
    explorers = client(first, second)
    first.instead = lambda path: say("unknown", status) if ADDRESS in path else None
    assert found(explorers) == [7]
    first.tip, second.tip = 11, 22
    assert explorers.tip() == 11


def test_calls_are_counted_failed_ones_too(first, second):
    explorers = client(first, second)
    first.instead = lambda _: say("oops", 500)
    explorers.tip()
    explorers.history(ADDRESS, SCRIPT)
    assert explorers.calls == len(first.asked) + len(second.asked) == 1 + 1 + 2


@pytest.mark.parametrize(
    ("text", "height"),
    [("0", 0), ("1000", 1000), (" 1000\n", 1000), ("100000000", 100_000_000)],
)
def test_the_tip_is_a_height(first, text, height):
    first.instead = lambda _: say(text)
    assert client(first).tip() == height


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "1.5",
        "1e3",
        "0x10",
        "\u0661",
        "null",
        "100000001",
        "9" * 400,
        HTML.decode(),
        "1 2",
    ],
)
def test_anything_else_is_no_tip(first, second, text):
    first.instead = lambda _: say(text)
    second.tip = 5
    assert client(first, second).tip() == 5
    with pytest.raises(ExplorerError, match="no height"):
        client(first).tip()


def test_a_spent_output_is_listed_with_the_block_that_spent_it(first):
    spending = tx_of(2, OTHER, height=999, spends=(f"{1:064x}", 0))
    first.histories[ADDRESS] = [spending, tx_of(1, SCRIPT, 1234, height=990)]
    (output,) = client(first).history(ADDRESS, SCRIPT).outputs
    assert (output.amount_sats, output.spent_height) == (1234, 999)
    assert output.block == Block(990, f"{990:064x}", from_unix_s(BLOCK_TIME))


def test_an_output_whose_spending_waits_is_not_spent_yet(first):
    spending = tx_of(2, OTHER, spends=(f"{1:064x}", 0))
    first.histories[ADDRESS] = [spending, tx_of(1, SCRIPT, height=990)]
    (output,) = client(first).history(ADDRESS, SCRIPT).outputs
    assert output.spent_height is None


def test_the_spending_of_another_output_of_that_transaction_spends_nothing_of_ours(first):
    spending = tx_of(2, OTHER, height=999, spends=(f"{1:064x}", 1))
    first.histories[ADDRESS] = [spending, tx_of(1, SCRIPT, height=990)]
    (output,) = client(first).history(ADDRESS, SCRIPT).outputs
    assert output.spent_height is None


def test_only_outputs_to_the_script_count_and_none_of_zero_satoshis(first):
    outputs = [
        {"scriptpubkey": OTHER, "value": 5},
        {"scriptpubkey": HEX, "value": 6},
        {"scriptpubkey": HEX, "value": 0},
        {"scriptpubkey": HEX + "00", "value": 7},
        {"scriptpubkey": HEX, "value": 8},
    ]
    first.histories[ADDRESS] = damaged(vout=outputs)
    seen = client(first).history(ADDRESS, SCRIPT).outputs
    assert [(output.vout, output.amount_sats) for output in seen] == [(1, 6), (4, 8)]
