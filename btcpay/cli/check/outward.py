"""The outbox beside the check: no check waits for a receiver."""

import logging
import threading

from peewee import PeeweeException

from btcpay.cli.context import Shell
from btcpay.notify.outbox import Delivered, Outbox, new_send
from btcpay.values.times import utc_now
from storage import locks
from storage.database import in_one_line

log = logging.getLogger(__name__)


class Outward:
    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._outbox = Outbox(shell.db, shell.settings, utc_now, new_send(shell.settings))
        self._thread = threading.Thread()

    def start(self) -> None:
        """Delivers what is due in a thread of its own, unless the last run is still at it."""
        if not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Until that is done, which takes no longer than a run may."""
        self._thread.join()

    def _run(self) -> None:
        db = self._shell.db
        try:
            with locks.only_one(db, self._shell.settings.database_url, "outbox") as alone:
                result = self._outbox.run() if alone else Delivered()
        except PeeweeException as error:
            log.error("nothing could be delivered: %s", in_one_line(error))
            return
        finally:
            db.close()
        if result.delivered or result.failed:
            log.info("notifications: %d delivered, %d not", result.delivered, result.failed)
