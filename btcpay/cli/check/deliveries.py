"""Delivers webhooks and mail in threads, so that no check waits for a receiver."""

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from queue import SimpleQueue

from btcpay.cli.shell import Shell
from btcpay.notify.delivery_queue import MAIL_SHARD, DeliveryCounts, program_shards
from btcpay.notify.outbox import Outbox, new_send
from btcpay.values.times import utc_now
from storage import locks
from storage.database import in_one_line
from storage.faults import PeeweeException

log = logging.getLogger(__name__)


class Deliveries:
    """Sends events and mails in two threads: one sends mails, the other all else."""

    def __init__(self, shell: Shell) -> None:
        programs = program_shards(shell.db.is_server)
        self._threads = (
            DeliveryThread(shell, programs),
            DeliveryThread(shell, [MAIL_SHARD]),
        )

    def start(self) -> None:
        """Starts both threads. A thread that is still running is not started again."""
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Ends both threads, and waits until the deliveries in progress are over."""
        for thread in self._threads:
            thread.wait()


class DeliveryThread:
    """A thread that sends the due events or mails to some shards (groups) of receivers.

    The thread, with its connection to the database, is kept for later runs.
    """

    def __init__(self, shell: Shell, shards: Sequence[str]) -> None:
        send = new_send(shell.settings)
        self._shell = shell
        self._shards = shards
        self._outbox = Outbox(shell.db, shell.settings, utc_now, send)
        # True for a delivery, False for the end.
        self._orders = SimpleQueue[bool]()
        self._is_busy = False
        self._thread = threading.Thread()

    def start(self) -> None:
        """Makes the thread send all due deliveries, unless it is already doing so."""
        if self._is_busy:
            return
        self._is_busy = True
        self._orders.put(True)
        if not self._thread.is_alive():  # it has not begun, or an error has ended it
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Ends the thread, and waits until the deliveries in progress are over."""
        self._orders.put(False)
        self._thread.join()

    def _work(self) -> None:
        try:
            while self._orders.get():
                self._run()
                self._is_busy = False
        finally:
            self._is_busy = False
            self._shell.db.close()  # closes only this thread's connection

    def _run(self) -> None:
        try:
            result = self._deliver()
        except PeeweeException as error:
            log.error("nothing could be delivered: %s", in_one_line(error))
            return
        if result.delivered or result.failed:
            log.info(
                "notifications: %d delivered, %d not", result.delivered, result.failed
            )

    def _deliver(self) -> DeliveryCounts:
        """Makes the due deliveries to those shards that no other process has locked."""
        db = self._shell.db
        url = self._shell.settings.database_url
        with ExitStack() as held_locks:

            def take(shard: str) -> bool:
                """Locks a shard (a group of receivers) until the deliveries are made.

                Returns False if another process has locked it.
                """
                return held_locks.enter_context(locks.only_one(db, url, shard))

            return self._outbox.run(take=take, only=self._shards)
