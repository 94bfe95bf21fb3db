"""Mail beside the check: one process sends at a time, and no check waits for a mail server."""

import logging
import threading

from peewee import PeeweeException

from btcpay.cli.context import Shell
from btcpay.mail.deliver import Mailer
from btcpay.times import utc_now
from storage import migrate
from storage.database import in_one_line

log = logging.getLogger(__name__)


class Mailing:
    """What a command sends, again and again."""

    def __init__(self, shell: Shell) -> None:
        self._db, self._url = shell.db, shell.settings.database_url
        self._mailer = Mailer(shell.db, shell.settings, utc_now)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Sends what is due in a thread of its own, unless the last one is still at it."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Until that is done, which takes no longer than a run may."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            with migrate.only_one(self._db, self._url, "mail") as alone:
                told = self._mailer.run() if alone else None
        except PeeweeException as error:
            log.error("mail could not use the database: %s", in_one_line(error))
            return
        finally:
            self._db.close()
        if told and told.sent:
            log.info("mail: %d sent", told.sent)
