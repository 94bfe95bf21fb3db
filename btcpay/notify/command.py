"""Transport: a program that gets the event's body on its standard input."""

import contextlib
import os
import shlex
import signal
import subprocess
from datetime import datetime

from btcpay.http.http_client import Session
from btcpay.notify.read import Event
from btcpay.notify.retries import Answer
from btcpay.notify.transport import Transport
from storage.models import Receiver


class Command(Transport):
    def send(
        self, _session: Session, receiver: Receiver, event: Event, _at: datetime, timeout_s: float
    ) -> Answer:
        """Status 0 takes the event. The program gets nothing of our environment, and no shell."""
        environ = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "EVENT_ID": event.id,
            "EVENT_TYPE": event.kind.value,
        }
        try:
            process = subprocess.Popen(
                shlex.split(receiver.command),
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            return Answer(False, None, f"could not be started: {error.strerror}")
        try:
            process.communicate(event.body, timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
            process.wait()
            return Answer(False, None, f"took longer than {timeout_s} s")
        status = process.returncode
        return Answer(status == 0, status, "" if status >= 0 else f"ended by signal {-status}")
