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


def test_who_queues_while_another_finds_the_file_locked_shares_its_failure_and_the_next_tries(
    monkeypatch,
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
    with pytest.raises(OperationalError), queue:
        thread.start()
        assert queues.wait(60)
        error = OperationalError("database is locked")
        error.orig = locked
        raise error
    thread.join(60)
    take()
    assert said == ["the database was locked a moment ago", "written"]
