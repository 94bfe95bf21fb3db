"""Where a shop begins in its account: bounded in time, and in requests a second."""

import threading
import time

import pytest

from btcpay.bitcoin.descriptor import parse
from btcpay.chain import account_start
from btcpay.chain.account_start import find_account_start
from btcpay.chain.used_addresses import GROUP, LOOK_AHEAD
from tests.support.accounts import descriptor_of
from tests.support.fake_esplora import silent
from tests.support.used_account import use


def ask(till, skip=None, seconds=60.0):
    account = parse(descriptor_of("p2wpkh"))
    db = till.shop.service.db
    return find_account_start(db, till.settings, account, skip, till.clock, seconds)


def test_an_explorer_that_hangs_ends_the_search_in_time(lied_to):
    till = lied_to()
    released = threading.Event()
    till.liar.instead = lambda path: (
        silent(released) if path.startswith("/address") else None
    )
    began_s = time.monotonic()
    try:
        start = ask(till, seconds=1.0)
    finally:
        released.set()
    assert time.monotonic() - began_s < 20
    assert start.problem and not start.is_decided and start.used_before == 0


@pytest.mark.parametrize("calls, pauses", [(9_999, 4), (10_000, 0)])
def test_a_public_explorer_is_asked_at_a_pace_and_an_own_one_at_once(
    lied_to, monkeypatch, calls, pauses
):
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR=str(calls))
    slept = []
    monkeypatch.setattr(account_start.time, "sleep", slept.append)
    start = ask(till)
    assert (start.looked_up, start.is_decided) == (LOOK_AHEAD, True)
    assert (
        sum(pause > 0 for pause in slept)
        == pauses
        == (pauses and LOOK_AHEAD // GROUP - 1)
    )
    assert all(pause <= GROUP / account_start.PER_SECOND for pause in slept)


def test_connections_to_the_explorer_are_kept_for_all_that_is_asked_at_once(
    till, caplog
):
    """urllib3 warns of each connection that it cannot keep; a terminal shows the warning."""
    assert ask(till).is_decided
    assert "discarding connection" not in caplog.text


def test_a_number_that_is_too_low_is_not_enough_where_the_search_is_cut_short(till):
    use(till, descriptor_of("p2wpkh"), [0, 10, 20])
    start = ask(till, skip=5)
    assert (start.index, start.used_before, start.is_decided) == (21, 21, True)
