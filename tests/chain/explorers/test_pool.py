"""Several explorers as one, on real sockets: failing over, who is asked, and what it costs."""

import time
from collections.abc import Callable

import pytest

from btcpay.chain.explorers import endpoint
from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.sources import MAX_BLOCKS_BEHIND
from btcpay.http import http_client
from btcpay.values.errors import ExplorerError, OutOfQuota, ProofFailed
from btcpay.values.networks import NETWORKS
from tests.support.fake_esplora import (
    ADDRESS,
    SCRIPT,
    dropped,
    say,
    silent,
    slow,
    tx_of,
)

REGTEST = NETWORKS["regtest"]


def client(*servers):
    roots = [server.root for server in servers]
    return Explorers(REGTEST, roots, http_client.Session(), pause=lambda _: None)


def calls_of(explorers):
    return sum(one.calls for one in explorers.all)


def found(explorers):
    """The numbers of the transactions that wait and pay the address."""
    outputs = explorers.mempool(ADDRESS, SCRIPT).outputs
    return [int(output.txid, 16) for output in outputs]


UNBELIEVABLE = {
    "a 500": say("oops", 500),
    "a 404: an error, not nothing": say("[]", 404),
    "a connection that is closed": dropped,
    "what Esplora never answers": say([tx_of(1, SCRIPT) | {"txid": 7}]),
}


@pytest.mark.parametrize("reply", UNBELIEVABLE.values(), ids=UNBELIEVABLE)
def test_what_cannot_be_believed_is_asked_of_the_next_explorer(first, second, reply):
    first.instead = lambda _: reply
    assert found(client(first, second)) == [7]


def test_a_question_that_breaks_in_the_middle_is_asked_whole_of_the_next_explorer(
    first, second
):
    def question(one):
        hash = one.tip_hash()
        return hash, one.raw_block(hash)

    first.instead = lambda path: say("oops", 500) if "/raw" in path else None
    second.block_time -= 7
    block = second.block_at(1000)
    assert client(first, second).ask(question) == (block.hash, block.raw)
    assert second.asked == ["/blocks/tip/hash", f"/block/{block.hash}/raw"]


def test_who_asks_may_refuse_an_answer_and_the_next_explorer_is_asked(first, second):
    def question(one):
        height = one.tip_height()
        if height < 2000:
            raise ProofFailed("that is nothing")
        return height

    second.tip = 2000
    assert client(first, second).ask(question) == 2000
    assert len(first.asked) == 1  # it would say the same again
    with pytest.raises(ExplorerError, match="that is nothing"):
        client(first).ask(question)


def test_the_explorer_that_answered_is_named(first, second):
    root = first.root.replace("127.0.0.1", "localhost")
    explorers = Explorers(REGTEST, [root, second.root], http_client.Session())
    assert explorers.mempool(ADDRESS, SCRIPT).host == "localhost"
    first.instead = lambda _: say("no", 404)
    assert explorers.mempool(ADDRESS, SCRIPT).host == "127.0.0.1"


def test_if_all_explorers_fail_the_error_says_why_each_did(first, second):
    first.instead = lambda _: say("oops", 500)
    second.instead = lambda _: say("<!doctype html>")
    with pytest.raises(ExplorerError, match="something else.*HTTP 500"):
        found(client(first, second))


def test_neither_the_error_nor_the_log_holds_an_endpoints_credentials(first, caplog):
    first.instead = lambda _: say("oops", 500)
    root = first.root.replace("http://", "http://user:hunter2@")
    with pytest.raises(ExplorerError) as caught:
        found(Explorers(REGTEST, [root], http_client.Session()))
    assert "hunter2" not in str(caught.value) + caplog.text


def test_an_explorer_that_failed_goes_to_the_back_until_the_next_one_fails(
    first, second
):
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
def test_an_explorer_that_does_not_know_one_thing_keeps_its_place(
    first, second, status
):
    explorers = client(first, second)
    first.instead = lambda path: say("unknown", status) if ADDRESS in path else None
    assert found(explorers) == [7]
    first.tip = 11
    second.tip = 22
    assert explorers.ask(Esplora.tip_height) == 11


class Impatient(Explorers):
    """Waits a fifth of a second where the product waits two and ten."""

    hedge_s = late_s = 0.2


def impatient(*servers):
    roots = [server.root for server in servers]
    return Impatient(REGTEST, roots, http_client.Session(4), pause=lambda _: None)


def test_after_two_seconds_without_an_answer_the_second_is_asked_too(
    first, second, released
):
    """A slow one, and one that is silent, dripping or hung up amid its answer, is the same."""
    first.instead = lambda _: silent(released)
    explorers = impatient(first, second)
    began_s = time.monotonic()
    assert found(explorers) == [7]
    assert 0.2 <= time.monotonic() - began_s < endpoint.REQUEST_TIMEOUT_S - 1
    assert (calls_of(explorers), len(second.asked)) == (2, 1)
    assert found(explorers) == [7] and len(first.asked) == 1  # it is last in line now
    assert Explorers.hedge_s == 2


def test_a_slow_answer_counts_when_the_second_fails(first, second):
    first.histories[ADDRESS] = [tx_of(1, SCRIPT)]
    first.instead = lambda path: slow(0.5, say(first.histories[ADDRESS]))
    second.instead = lambda _: say("no", 404)
    assert found(impatient(first, second)) == [1]


@pytest.mark.parametrize(
    ("has_news", "late_s", "least_s"), [(True, 30, 0.2), (False, 1, 1)]
)
def test_all_are_asked_at_once_and_the_slow_are_left(
    first, second, released, has_news, late_s, least_s
):
    first.instead = lambda _: silent(released)
    explorers = impatient(first, second)
    explorers.late_s = late_s
    began_s = time.monotonic()
    heights, failed = explorers.ask_all(
        Esplora.tip_height, lambda: explorers.hedge_s if has_news else explorers.late_s
    )
    assert least_s <= time.monotonic() - began_s < 20
    assert list(heights.values()) == [1000] and [
        str(error) for error in failed.values()
    ] == ["took too long"]


def test_an_explorer_has_sixty_seconds_of_a_run_and_addresses_are_asked_all_the_same(
    first, second, monkeypatch
):
    explorers = client(first)
    assert explorers.ask(Esplora.tip_height) == 1000
    (one,) = explorers.all
    one._chain_s += endpoint.MOST_CHAIN_S
    with pytest.raises(OutOfQuota, match="127.0.0.1 has used up its time in this run"):
        explorers.ask(Esplora.tip_height)
    assert found(explorers) == [] and calls_of(explorers) == 2
    one._is_of_network = True  # which is asked once, before
    assert not explorers.is_used(ADDRESS)  # of which a restore asks hundreds
    assert endpoint.MOST_CHAIN_S == 60


def test_time_that_is_spent_is_no_excuse_where_another_explorer_fails(first, second):
    """A block that the honest one has not is passed over then, and keeps no other from it."""
    explorers = client(first, second)
    explorers.all[0]._chain_s += endpoint.MOST_CHAIN_S
    second.instead = lambda _: say("no", 404)
    with pytest.raises(ExplorerError, match="its time in this run.*HTTP 404") as caught:
        explorers.ask(Esplora.tip_height)
    assert not isinstance(caught.value, OutOfQuota)


def test_a_walk_of_many_answers_is_cut_by_that_time(first, monkeypatch):
    monkeypatch.setattr(endpoint, "MOST_CHAIN_S", 0.5)
    first.instead = lambda _: slow(0.2, say("1000"))

    def walk(one):
        while True:
            one.tip_height()

    with pytest.raises(OutOfQuota):
        client(first).ask(walk)
    assert (
        1 <= len(first.asked) <= 3
    )  # fewer on a machine that stands still for a while


@pytest.mark.parametrize("end", [lambda one: one.end_within(0), Explorers.close])
def test_after_a_run_or_its_time_nobody_is_asked(first, end):
    explorers = client(first)
    end(explorers)
    with pytest.raises(OutOfQuota):
        found(explorers)
    assert first.asked == []


@pytest.mark.parametrize(
    ("known", "is_enough"), [(999, True), (1000, True), (1001, False)]
)
def test_a_chain_that_is_lower_than_was_known_is_not_believed(first, known, is_enough):
    if is_enough:
        client(first).require_chain(known)
    else:
        with pytest.raises(
            ExplorerError, match="chain of 1000 blocks, 1001 were known"
        ):
            client(first).require_chain(known)


def test_the_chain_of_another_network_is_not_asked(first, second):
    first.tip = 5000
    second.tip = 1000
    first.instead = lambda path: say("00" * 32) if path == "/block-height/0" else None
    explorers = client(first, second)
    explorers.require_chain(0)
    assert explorers.is_used(ADDRESS)
    assert "/blocks/tip/height" not in first.asked
    with pytest.raises(ExplorerError, match="shows another network than regtest"):
        client(first).is_used(ADDRESS)


@pytest.mark.parametrize(
    ("behind", "asked"), [(MAX_BLOCKS_BEHIND, 1), (MAX_BLOCKS_BEHIND + 1, 0)]
)
def test_once_a_chain_is_required_who_is_behind_is_not_asked(
    first, second, behind, asked
):
    second.tip = first.tip - behind
    explorers = client(first, second)
    explorers.require_chain(0)
    first.instead = lambda _: say("oops", 500)
    ask: Callable[[], object] = lambda: explorers.is_used(ADDRESS)  # noqa: E731
    if asked:
        assert ask() is True
    else:
        with pytest.raises(ExplorerError, match="is 3 blocks behind the others"):
            ask()
    assert [path for path in second.asked if "/address" in path] == [
        f"/address/{ADDRESS}/txs"
    ] * asked


def test_without_a_required_chain_nobody_is_asked_how_high_it_is(first, second):
    assert client(first, second).is_used(ADDRESS) is False
    assert first.asked == ["/block-height/0", f"/address/{ADDRESS}/txs"]


def test_calls_are_counted_failed_ones_too(first, second):
    explorers = client(first, second)
    first.instead = lambda _: say("oops", 500)
    explorers.ask(Esplora.tip_height)
    found(explorers)
    assert calls_of(explorers) == len(first.asked) + len(second.asked) == 1 + 2
