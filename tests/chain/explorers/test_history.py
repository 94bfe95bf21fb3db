"""An explorer that lacks the path of the mempool: its list of all transactions answers instead."""

from datetime import timedelta

import pytest

from btcpay.chain.explorers import history
from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.quota import Quota
from btcpay.http import http_client
from btcpay.values.errors import FetchError
from btcpay.values.networks import NETWORKS
from tests.support.fake_esplora import ADDRESS, SCRIPT, say, tx_of
from tests.support.mempool_electrum import cannot_get, page_of

TXS = f"/address/{ADDRESS}/txs"
MEMPOOL = f"{TXS}/mempool"


@pytest.fixture
def quota(shop, clock):
    return Quota(shop.service.db, 1000, clock)


def asking(first, quota=None):
    session = http_client.Session()
    return Esplora(NETWORKS["regtest"], first.root, session, quota, lambda _: None)


def on_electrum(first, txs):
    """From now on it answers as mempool does on its electrum backend."""
    first.asked.clear()
    first.instead = lambda path: (
        page_of(txs, path) if path.partition("?")[0] == TXS else cannot_get(path)
    )


def waiting(count, start=1):
    return [tx_of(number, SCRIPT) for number in range(start, start + count)]


def confirmed(count, start=1001):
    return [
        tx_of(number, SCRIPT, height=number) for number in range(start, start + count)
    ]


def seen(mempool):
    return sorted(int(output.txid, 16) for output in mempool.outputs)


def test_what_waits_is_found_in_the_list_of_all_and_what_is_confirmed_is_left_out(
    first,
):
    on_electrum(first, [*confirmed(2), *waiting(1)])
    mempool = asking(first).mempool(ADDRESS, SCRIPT)
    assert (seen(mempool), mempool.is_whole) == ([1], True)
    assert first.asked == [MEMPOOL, TXS]


def test_an_empty_list_of_all_says_that_nothing_waits(first):
    on_electrum(first, [])
    mempool = asking(first).mempool(ADDRESS, SCRIPT)
    assert (mempool.outputs, mempool.is_whole) == ([], True)


@pytest.mark.parametrize(
    ("count", "pages", "is_whole"),
    [(9, 1, True), (10, 2, True), (49, 5, True), (50, 5, False), (70, 5, False)],
)
def test_every_page_is_asked_for_and_five_are_the_most(first, count, pages, is_whole):
    on_electrum(first, waiting(count))
    mempool = asking(first).mempool(ADDRESS, SCRIPT)
    assert seen(mempool) == list(range(1, min(count, 50) + 1))
    assert mempool.is_whole == is_whole
    assert len(first.asked) == 1 + pages


def test_a_payment_of_coins_that_wait_is_listed_last_and_found(first):
    of_waiting_coins = tx_of(7, SCRIPT, electrum_height=-1)
    on_electrum(first, [*confirmed(12), of_waiting_coins])
    assert seen(asking(first).mempool(ADDRESS, SCRIPT)) == [7]


def test_a_server_that_shows_the_same_page_again_has_not_shown_all(first):
    page = [*waiting(5), *confirmed(20)]
    first.instead = lambda path: say("", 404) if path == MEMPOOL else say(page)
    mempool = asking(first).mempool(ADDRESS, SCRIPT)
    assert (seen(mempool), mempool.is_whole) == ([1, 2, 3, 4, 5], False)


def page_for_people(status):
    return say("<!doctype html><p>404", status, **{"Content-Type": "text/html"})


# How a server answers a path that it does not have.
LACKS = {
    "404": say("", 404),
    "405": say("", 405),
    "501": say("", 501),
    "a web page": page_for_people(200),
}


@pytest.mark.parametrize("case", LACKS)
def test_the_list_of_all_is_asked_where_the_path_is_missing(first, case):
    first.instead = lambda path: LACKS[case] if path == MEMPOOL else say(waiting(1))
    assert seen(asking(first).mempool(ADDRESS, SCRIPT)) == [1]


@pytest.mark.parametrize("status", [400, 403, 413, 429, 500, 503])
def test_a_refusal_is_not_a_missing_path(first, status):
    first.instead = lambda _: say("[]", status)
    with pytest.raises(FetchError, match=str(status)):
        asking(first).mempool(ADDRESS, SCRIPT)
    assert first.asked == [MEMPOOL]


# Answers to the list of all that say nothing about the mempool.
NO_ANSWERS = {
    "a proxy has no path at all": say("[]", 404),
    "a page for people": page_for_people(200),
    "addresses cannot be looked up": say("", 405),
    "the address is of an unknown kind": say("Invalid Bitcoin address", 400),
    "a history too long": say("", 413),
    "no list": say({}),
    "an error in place of a list": say({"error": "Failed to get address"}),
    "no body": say(b""),
    "null": say("null"),
}


@pytest.mark.parametrize("case", NO_ANSWERS)
def test_whatever_is_no_list_of_transactions_never_says_that_nothing_waits(
    first, quota, case
):
    first.instead = lambda path: say("", 404) if path == MEMPOOL else NO_ANSWERS[case]
    with pytest.raises(FetchError):
        asking(first, quota).mempool(ADDRESS, SCRIPT)
    assert not history.lacks_mempool(quota, asking(first).name)


def test_a_later_page_that_fails_is_no_answer(first):
    on_electrum(first, waiting(15))
    on_electrum_answer = first.instead
    first.instead = lambda path: (
        say("", 500) if "after_txid" in path else on_electrum_answer(path)
    )
    with pytest.raises(FetchError, match="500"):
        asking(first).mempool(ADDRESS, SCRIPT)


def test_the_missing_path_is_remembered_for_a_day_by_every_process(first, quota, clock):
    on_electrum(first, waiting(1))
    asking(first, quota).mempool(ADDRESS, SCRIPT)
    clock.move(hours=23.9)
    assert seen(asking(first, quota).mempool(ADDRESS, SCRIPT)) == [1]
    assert first.asked == [MEMPOOL, TXS, TXS]
    clock.move(hours=0.2)
    asking(first, quota).mempool(ADDRESS, SCRIPT)
    assert first.asked == [MEMPOOL, TXS, TXS, MEMPOOL, TXS]


def test_what_a_clock_that_was_ahead_remembered_is_not_believed(first, quota, clock):
    on_electrum(first, waiting(1))
    clock.move(days=400)
    asking(first, quota).mempool(ADDRESS, SCRIPT)
    clock.at -= timedelta(days=400)
    asking(first, quota).mempool(ADDRESS, SCRIPT)
    assert first.asked == [MEMPOOL, TXS] * 2


def test_an_explorer_that_was_exchanged_is_asked_for_its_mempool_again(first, quota):
    on_electrum(first, waiting(1))
    asking(first, quota).mempool(ADDRESS, SCRIPT)
    first.instead = lambda path: say(waiting(2)) if path == MEMPOOL else say("", 404)
    with pytest.raises(FetchError, match="404"):
        asking(first, quota).mempool(ADDRESS, SCRIPT)
    assert seen(asking(first, quota).mempool(ADDRESS, SCRIPT)) == [1, 2]
