"""Threads that wait for a database, and those that are refused instead."""

import sqlite3
import threading
import time

import pytest
from peewee import OperationalError

from storage import write_queue
from storage.write_queue import Places, TooManyWait, WriteQueue


def test_beyond_the_places_one_waits_a_moment_and_the_next_not_at_all(monkeypatch):
    monkeypatch.setattr(write_queue, "PLACES", 2)
    places = Places()
    with places:
        with places:
            started_s = time.monotonic()
            moment_s = write_queue.PATIENCE_S
            for patience_s in (moment_s, 60):
                monkeypatch.setattr(write_queue, "PATIENCE_S", patience_s)
                with pytest.raises(TooManyWait), places:
                    pass
                assert moment_s <= time.monotonic() - started_s < 50
        with places:
            pass


@pytest.mark.parametrize(
    ("is_short", "first"),
    [(False, "the database was locked a moment ago"), (True, "written")],
    ids=["who waits as long", "not of who writes only if it is free"],
)
def test_who_queues_while_another_finds_the_file_locked_shares_its_failure_and_the_next_tries(
    monkeypatch, is_short, first
):
    class Noted(Places):
        def __enter__(self):
            super().__enter__()
            queues.set()

    def take():
        try:
            with queue:
                said.append("written")
        except OperationalError as error:
            said.append(str(error))

    monkeypatch.setattr(write_queue, "Places", Noted)
    queue = WriteQueue()
    queues = threading.Event()
    said = []
    thread = threading.Thread(target=take)
    locked = sqlite3.OperationalError()
    locked.sqlite_errorcode = sqlite3.SQLITE_BUSY
    with pytest.raises(OperationalError), queue.if_free() if is_short else queue:
        thread.start()
        assert queues.wait(60)
        error = OperationalError("database is locked")
        error.orig = locked
        raise error
    thread.join(60)
    take()
    assert said == [first, "written"]


def test_who_writes_only_if_the_database_is_free_does_not_wait():
    queue = WriteQueue()
    places = Places()
    taken, leave = threading.Event(), threading.Event()

    def take():
        with queue:
            taken.set()
            leave.wait(60)

    thread = threading.Thread(target=take)
    thread.start()
    assert taken.wait(60)
    with pytest.raises(TooManyWait), queue.if_free():
        pass
    leave.set()
    thread.join(60)
    with queue.if_free(), places.if_free():
        pass
