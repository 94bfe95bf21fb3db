"""The thread that writes what requests have collected."""

import threading

from storage.background_writer import BackgroundWriter
from storage.database import open_database
from tests.support.builders import until


class SlowWriter(BackgroundWriter):
    """Its writes take until `may_end` is set."""

    def __init__(self, db):
        super().__init__(db)
        self.collected = []
        self.written = []
        self.is_writing = threading.Event()
        self.may_end = threading.Event()

    def add(self, value):
        with self._lock:
            self.collected.append(value)
            self.wake()

    def pause_s(self):
        return 0

    def write(self):
        with self._lock:
            values = self.collected
            self.collected = []
        self.is_writing.set()
        self.may_end.wait(30)
        self.written += values


def test_what_comes_during_a_write_is_written_before_the_thread_ends(tmp_path):
    writer = SlowWriter(open_database(f"sqlite:///{tmp_path}/shop.db"))
    writer.add("before")
    assert writer.is_writing.wait(30)
    writer.add("meanwhile")
    closing = threading.Thread(target=writer.close)
    closing.start()
    until(writer._ending.is_set, "the end")
    writer.may_end.set()
    closing.join(30)
    assert writer.written == ["before", "meanwhile"]
