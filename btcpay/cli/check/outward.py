"""Webhooks and mail beside the check: neither waits for the other, and no check for a receiver."""

import logging
import threading
from collections.abc import Callable
from importlib import import_module

from peewee import PeeweeException

from btcpay.cli.context import Shell
from storage import locks
from storage.database import in_one_line
from storage.queries import public_events

# By the name of the reader. `ready(shell)` of each answers what makes a run and says how it went.
# Loaded when somebody is to be told: both take longer to load than the rest of an idle check.
MODULES = {"webhooks": "btcpay.cli.notify.deliveries", "mail": "btcpay.cli.notify.mailing"}

log = logging.getLogger(__name__)


class Outward:
    """What a command tells others, again and again; connections are kept."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._runs: dict[str, Callable[[], str]] = {}
        self._threads: dict[str, threading.Thread] = {}

    def start(self) -> None:
        """Tells what is due, each in a thread of its own, unless its last one is still at it."""
        try:
            wanted = [name for name in MODULES if self._is_wanted(name)]
        except PeeweeException as error:
            log.error("nobody can be told: %s", in_one_line(error))
            return
        for name in wanted:
            thread = self._threads.get(name)
            if thread is None or not thread.is_alive():
                self._begin(name)

    def _begin(self, name: str) -> None:
        if name not in self._runs:
            self._runs[name] = import_module(MODULES[name]).ready(self._shell)
        self._threads[name] = threading.Thread(target=self._tell, args=(name,), daemon=True)
        self._threads[name].start()

    def wait(self) -> None:
        """Until that is done, which takes no longer than a run may."""
        for thread in self._threads.values():
            thread.join()

    def _is_wanted(self, name: str) -> bool:
        """Whether anybody was ever to be told; of what waits the run itself knows."""
        if name == "mail" and self._shell.settings.smtp_url is not None:
            return True
        return self._shell.db.row(public_events.READER, name=name) is not None

    def _tell(self, name: str) -> None:
        """Once, unless another process is at it."""
        db = self._shell.db
        try:
            with locks.only_one(db, self._shell.settings.database_url, name) as alone:
                told = self._runs[name]() if alone else ""
        except PeeweeException as error:
            log.error("%s could not use the database: %s", name, in_one_line(error))
            return
        finally:
            db.close()
        if told:
            log.info("%s: %s", name, told)
