"""One attempt to tell an endpoint: a signed POST, or a program with the body on its input."""

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from btcpay.http import http_client
from btcpay.notify.events.read import Event
from btcpay.notify.webhooks.signature import headers
from btcpay.values.errors import FetchError
from btcpay.values.times import to_ms
from storage.database import Row

ATTEMPT_S = 10
KEPT_BYTES = 200  # of an answer: enough to see what is wrong, too little to be worth stealing


class Answer(NamedTuple):
    """How an attempt went; `status` of HTTP or of the program, None when there was none.

    `text` is the answer's beginning, or why there was none.
    """

    is_taken: bool
    status: int | None
    text: str


def new_session(connections: int, proxy: str = "") -> http_client.Session:
    """What is far is told through the `proxy`, if there is one."""
    return http_client.Session(connections, proxy)


def send(
    session: http_client.Session, endpoint: Row, event: Event, at: datetime, timeout_s: float
) -> Answer:
    """Tells an endpoint of an event; what goes wrong is an answer too."""
    if endpoint["command"] is not None:
        return _run(shlex.split(endpoint["command"]), event, timeout_s)
    body = event.body
    signed = headers(secrets_of(endpoint, at), event.id, at, body)
    try:
        status, start = session.post(endpoint["url"], timeout_s, body, signed, KEPT_BYTES)
    except FetchError as error:
        return Answer(False, None, str(error))
    text = start.decode("utf-8", "replace").replace("\0", "")
    return Answer(200 <= status < 300, status, text)


def secrets_of(endpoint: Row, at: datetime) -> list[str]:
    """The secret, and until a day after a rotation the old one."""
    secrets = [endpoint["secret"]]
    if endpoint["old_until_at"] is not None and to_ms(at) < endpoint["old_until_at"]:
        secrets.append(endpoint["old_secret"])
    return secrets


def _run(words: Sequence[str], event: Event, timeout_s: float) -> Answer:
    """Status 0 takes it. The program gets nothing of our environment, and no shell."""
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "EVENT_ID": event.id,
        "EVENT_TYPE": event.kind.value,
    }
    try:
        process = subprocess.Popen(
            words,
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
        _end(process)
        return Answer(False, None, f"took longer than {timeout_s} s")
    status = process.returncode
    return Answer(status == 0, status, "" if status >= 0 else f"ended by signal {-status}")


def _end(process: subprocess.Popen) -> None:
    """With all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
