"""A look that a process does not survive: counted before it begins, taken back when it ends."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from btcpay.check.line import Line
from btcpay.check.plan import next_scan
from btcpay.check.room import Room
from btcpay.check.scan import Scanner, scan_job
from btcpay.check.watchlist import tip_of, watchlist_of
from builders import until
from databases import about_sqlite
from fake_esplora import LiedTo, Terminal, Till, say, silent

from btcpay import http_client
from btcpay.explorers.pool import Explorers, History
from btcpay.explorers.quota import Quota
from storage.queries import invoices

Lies = Callable[..., LiedTo]


class Killed(BaseException):
    """As if the process ended here: nothing after it runs but what unwinds."""


class Deadly(Explorers):
    """Nobody survives its answer about this address."""

    def __init__(self, till: Till, address: str) -> None:
        settings = till.settings
        super().__init__(settings.network, settings.explorers, http_client.new_session())
        self._deadly = address

    def history(self, address: str, script: bytes) -> History:
        if address == self._deadly:
            raise Killed
        return super().history(address, script)


def noted(till: Till, invoice: dict[str, Any]) -> tuple[int, int, bool]:
    """Looks begun and not ended, failures, and whether the time of the former is known."""
    row = till.shop.service.db.only(invoices.WHOLE, id=invoice["id"])
    return row["begun"], row["failures"], row["begun_at"] is not None


def die(till: Till, invoice: dict[str, Any]) -> None:
    till.clock.move(minutes=1)
    with pytest.raises(Killed):
        till.checker(explorers=Deadly(till, invoice["deposit_address"]), in_flight=2).run()


def test_an_address_that_no_run_survives_backs_off_and_all_others_are_settled(lied_to: Lies):
    till = lied_to()
    deadly, *others = (till.shop.invoice() for _ in range(12))
    for invoice in (deadly, *others):
        till.pay(invoice)
    till.mine()
    for _ in range(3):
        die(till, deadly)
    assert {till.look(invoice)["status"] for invoice in others} == {"paid"}
    assert noted(till, deadly) == (3, 0, True)
    till.clock.move(seconds=59)
    watchlist = watchlist_of(till.shop.service.db, till.settings, till.clock())
    tip = tip_of(till.shop.service.db, till.clock())
    told = next_scan(deadly["id"], watchlist.addresses, tip, till.clock())
    assert told == "after a pause: 3 looks in a row have failed"
    explorers = Deadly(till, deadly["deposit_address"])
    assert till.checker(explorers=explorers).run().complete
    till.clock.move(seconds=1)
    assert till.check().changed == {deadly["id"]: "paid"}
    assert noted(till, deadly) == (0, 0, False)


def test_it_is_noted_before_the_explorer_is_asked(lied_to: Lies):
    till = lied_to()
    invoice, found = till.shop.invoice(), []
    till.liar.lies = {"^/address/": lambda txs: found.append(noted(till, invoice)) or txs}
    assert till.check().complete
    assert found == [(1, 0, True)] and noted(till, invoice) == (0, 0, False)


def test_a_look_that_fails_is_one_failure_and_one_beyond_the_quota_is_none(lied_to: Lies):
    till = lied_to()
    invoice = till.shop.invoice()
    till.liar.lies = {"^/address/": lambda _: say("no", 500)}
    till.check()
    assert noted(till, invoice) == (0, 1, False)
    with_one_call = Quota(till.shop.service.db, till.liar.count("") + 1, till.clock)
    settings, session = till.settings, http_client.new_session()
    explorers = Explorers(settings.network, settings.explorers, session, with_one_call)
    assert till.checker(explorers=explorers).run([invoice["id"]]).unreached == [invoice["id"]]
    assert noted(till, invoice) == (0, 1, False)


def test_what_a_dead_run_has_left_behind_stays_until_a_look_succeeds(lied_to: Lies):
    till = lied_to()
    invoice = till.shop.invoice()
    die(till, invoice)
    till.liar.lies = {"^/address/": lambda _: say("no", 500)}
    till.clock.move(minutes=1)
    till.check()
    assert noted(till, invoice) == (1, 1, True)
    till.liar.lies = {}
    till.clock.move(minutes=1)
    assert till.check().complete and noted(till, invoice) == (0, 0, False)


@about_sqlite  # on a server the dead one's claim keeps others from it for a minute
def test_after_processes_were_killed_the_next_one_asks_for_the_others_alone(lied_to: Lies):
    till = lied_to()
    deadly, other, released = till.shop.invoice(), till.shop.invoice(), threading.Event()
    till.pay(other)
    till.mine()
    path = f"/address/{deadly['deposit_address']}/"
    till.liar.instead = lambda asked: silent(released) if path in asked else None
    for number in range(1, 4):
        process = Terminal(till).start("check")
        until(lambda number=number: till.liar.count(path) == number, "the deadly question")
        process.kill()
        process.communicate()
    summary = Terminal(till).json("check")
    released.set()
    assert till.liar.count(path) == 3 and summary["failed"] == []
    assert till.look(other)["status"] == "paid"


@pytest.mark.parametrize(("bytes_left", "proven"), [(10_000_000, 3), (1, 1)])
def test_one_run_keeps_as_many_proofs_as_it_has_room_for(lied_to: Lies, bytes_left, proven):
    till = lied_to()
    invoice = till.shop.invoice()
    for _ in range(3):
        till.pay(invoice, 1_000)
    till.mine()
    scanner = Scanner(
        till.settings, till.explorers(), till.shop.service.prices, 10**6, Room(bytes_left)
    )
    height = till.sandbox.chain.ledger.height
    scan = scanner.scan(scan_job(till.shop.service.db, invoice["id"], height), till.clock)
    assert (len(scan.proofs), scan.short) == (proven, proven < 3)


def test_whom_a_run_did_not_survive_is_looked_at_alone_and_last():
    line = Line("abcde", frozenset("de"), most=2)
    assert line.take(0) == ["a", "b"]
    assert line.take(1) == ["c"]
    assert line.take(1) == [] and line.take(0) == ["d"]
    assert line.take(1) == [] and line.take(0) == ["e"]
    assert line.take(0) == []
