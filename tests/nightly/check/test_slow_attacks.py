"""Attacks of an adversarial review that take ten seconds or more."""

import signal
import sqlite3
import threading

from tests.support.builders import clean_environ, until
from tests.support.forge import forge
from tests.support.playground import children_of, is_alive, start_playground


def test_a_watching_check_survives_a_database_that_is_locked_for_long(till):
    invoice = till.shop.invoice(expires_in_hours=0.0001)
    path = till.shop.environ["BLOCKTILL_DATABASE_URL"].removeprefix("sqlite:///")
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    environ = clean_environ(**till.shop.environ)
    watching = forge().start(environ, ["check", "--watch", "1"])
    try:
        assert any("database" in line for line in watching.stderr)
        lock.execute("ROLLBACK")
        threading.Thread(target=watching.stderr.read, daemon=True).start()
        # A key may ask 120 times a minute.
        until(
            lambda: till.look(invoice)["status"] == "expired",
            "the watch to go on",
            every_s=0.2,
        )
    finally:
        lock.close()
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(20) == 0


def test_the_sandbox_takes_its_processes_with_it_even_when_it_is_killed(tmp_path):
    playground = start_playground(tmp_path)
    family = children_of(playground.process.pid)
    assert len(family) >= 3
    playground.stop(signal.SIGKILL)
    until(lambda: not any(map(is_alive, family)), "the children to end")
