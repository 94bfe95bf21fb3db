"""The table of all transports, the ways to send events to receivers.

Parts (optional plug-ins) add their own, which they define in their module `transport`.
Signatures of webhooks follow Standard Webhooks 1.0.0
(github.com/standard-webhooks/standard-webhooks).
"""

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import shlex
import signal
import subprocess
from collections.abc import Iterable
from datetime import datetime

from btcpay import hooks
from btcpay.http.http_client import Session
from btcpay.notify.events import Event
from btcpay.notify.kinds import EventSubject
from btcpay.notify.outcome import Answer
from btcpay.notify.transport import NewDelivery, Transport, post
from btcpay.values.times import to_ms
from storage.database import Row
from storage.models import PublicEvent, Receiver
from storage.queries import receivers

PREFIX = "whsec_"
SECRET_BYTES = 32  # the specification requires 24 to 64


def new_secret() -> str:
    """Returns a new secret for signatures: `whsec_` and the base64 of 256 random bits."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, id: str, timestamp_s: int, body: bytes) -> str:
    """Returns the signature of a request: `v1,` and the base64 of an HMAC-SHA256.

    The HMAC is over the event's id, the time and the body, separated by dots. `secret`
    has the form that `new_secret` returns. `timestamp_s` is the Unix time in seconds.
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    content = f"{id}.{timestamp_s}.".encode() + body
    mac = hmac.digest(key, content, hashlib.sha256)
    return "v1," + base64.b64encode(mac).decode()


def headers(
    signing_secrets: Iterable[str], id: str, at: datetime, body: bytes
) -> dict[str, str]:
    """Returns the headers of a webhook's request, with a signature for each secret.

    `id` is the event's id. `at` is the time of the attempt.
    """
    timestamp_s = int(at.timestamp())
    signatures = [sign(secret, id, timestamp_s, body) for secret in signing_secrets]
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(signatures),
    }


class StandardWebhook(Transport):
    """Sends signed HTTP requests to a shop's URL."""

    def send(
        self,
        session: Session,
        receiver: Receiver,
        event: Event,
        at: datetime,
        timeout_s: float,
    ) -> Answer:
        """Sends the event in a POST request. A status of 2xx means success.

        The request is signed with the webhook's secret. For a day after the secret was
        rotated, it is also signed with the old one.
        """
        signing_secrets = [receiver.secret]
        if receiver.old_until_ms is not None and to_ms(at) < receiver.old_until_ms:
            signing_secrets.append(receiver.old_secret)
        body = event.body
        # The columns may be NULL, since other receivers have no secret.
        signed = headers(filter(None, signing_secrets), event.id, at, body)
        return post(session, receiver.url or "", timeout_s, body, signed)


class Command(Transport):
    """Runs a program of the operator for each event."""

    def send(
        self,
        _session: Session,
        receiver: Receiver,
        event: Event,
        _at: datetime,
        timeout_s: float,
    ) -> Answer:
        """Runs the command, without a shell and with few environment variables.

        The command gets the event's JSON on its standard input. Exit status 0 means
        success. The command is killed if it runs longer than `timeout_s` seconds.
        """
        try:
            process = _start(receiver, event)
        # The program does not exist, a quote is not closed, or the command is empty.
        except (OSError, ValueError, IndexError) as error:
            why = getattr(error, "strerror", None) or error
            text = f"could not be started: {why}"
            return Answer(is_taken=False, status=None, text=text)
        try:
            process.communicate(event.body, timeout_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            text = f"took longer than {timeout_s} s"
            return Answer(is_taken=False, status=None, text=text, may_go_on=True)
        status = process.returncode
        text = ""
        if status < 0:
            text = f"ended by signal {-status}"
        return Answer(is_taken=status == 0, status=status, text=text)


def _start(receiver: Receiver, event: Event) -> subprocess.Popen[bytes]:
    """Starts the receiver's command in a process group of its own.

    Raises OSError, ValueError or IndexError if the command cannot be started.
    """
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "EVENT_ID": event.id,
        "EVENT_TYPE": event.kind.value,
    }
    return subprocess.Popen(
        shlex.split(receiver.command),
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the command, and the processes that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Receipt(Transport):
    """Mails one receipt for each invoice.

    An invoice that becomes paid again after a reorganisation gets no second receipt. An
    invoice of a bill gets none: the customer gets a mail when the whole bill is paid.
    """

    def deliveries_for(
        self,
        receiver: Receiver,
        event: PublicEvent,
        about: EventSubject,
        state: Row,
    ) -> list[NewDelivery]:
        if getattr(about, "bill_id", None):
            return []
        return [NewDelivery(event.kind, about.id)]


TRANSPORTS: dict[str, Transport] = {
    receivers.WEBHOOK: StandardWebhook(),
    receivers.COMMAND: Command(),
    receivers.MAIL: Transport(),
    receivers.RECEIPT: Receipt(),
} | {part.name: part.transport for part in hooks.of(hooks.Transports)}
