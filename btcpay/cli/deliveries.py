"""Webhooks beside the check: one process delivers at a time, and no check waits for a receiver."""

import logging
import threading

from peewee import PeeweeException

from btcpay.cli.context import Shell
from btcpay.errors import SPOILED
from btcpay.times import utc_now
from btcpay.webhooks.deliver import MOST_OF_ONE, Deliverer
from btcpay.webhooks.send import ATTEMPT_S, new_session, send
from schemas.resources import Resources
from storage import migrate
from storage.database import in_one_line

log = logging.getLogger(__name__)


class Deliveries:
    """What a command delivers, again and again; connections to receivers are kept."""

    def __init__(self, shell: Shell) -> None:
        self._db, self._url = shell.db, shell.settings.database_url
        session = new_session(MOST_OF_ONE, shell.settings.proxy)
        self._deliverer = Deliverer(
            shell.db,
            Resources(shell.settings.base_url),
            utc_now,
            lambda endpoint, event, at: send(session, endpoint, event, at, ATTEMPT_S),
        )
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Delivers what is due, unless another process is at it."""
        try:
            with migrate.only_one(self._db, self._url, "webhooks") as alone:
                told = self._deliverer.run() if alone else None
        except PeeweeException as error:
            log.error("webhooks could not use the database: %s", in_one_line(error))
            return
        except SPOILED:  # whatever is wrong with them, the check has done its part
            log.exception("webhooks could not be delivered")
            return
        if told and (told.delivered or told.failed):
            log.info("webhooks: %d delivered, %d not", told.delivered, told.failed)

    def start(self) -> None:
        """The same in a thread of its own, unless the last one is still at it."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run_and_close, daemon=True)
            self._thread.start()

    def _run_and_close(self) -> None:
        try:
            self.run()
        finally:
            self._db.close()
