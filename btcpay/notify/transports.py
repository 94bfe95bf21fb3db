"""The table of transports: ours, and those that parts bring in a module `transport`.

Source of the signatures: github.com/standard-webhooks/standard-webhooks, Standard Webhooks 1.0.0.
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
SECRET_BYTES = 32  # the specification asks for 24 to 64


def new_secret() -> str:
    """`whsec_` and the base64 of 256 random bits."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, id: str, timestamp_s: int, body: bytes) -> str:
    """`v1,` and the base64 of HMAC-SHA256 over id, time and body."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    content = f"{id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def headers(keys: Iterable[str], id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers of an attempt at this time, signed with each of the secrets."""
    timestamp_s = int(at.timestamp())
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(sign(key, id, timestamp_s, body) for key in keys),
    }


class StandardWebhook(Transport):
    def send(
        self,
        session: Session,
        receiver: Receiver,
        event: Event,
        at: datetime,
        timeout_s: float,
    ) -> Answer:
        """Sends it signed with each valid secret; 2xx accepts the event."""
        keys = [receiver.secret]
        if receiver.old_until_ms is not None and to_ms(at) < receiver.old_until_ms:
            keys.append(receiver.old_secret)
        body = event.body
        signed = headers(filter(None, keys), event.id, at, body)
        return post(session, receiver.url or "", timeout_s, body, signed)


class Command(Transport):
    def send(
        self,
        _session: Session,
        receiver: Receiver,
        event: Event,
        _at: datetime,
        timeout_s: float,
    ) -> Answer:
        """Runs it without a shell, and without our environment; status 0 accepts the event."""
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
        # There is no such program, an open quote, or no word.
        except (OSError, ValueError, IndexError) as error:
            why = getattr(error, "strerror", None) or error
            return Answer(False, None, f"could not be started: {why}")
        try:
            process.communicate(event.body, timeout_s)
        except subprocess.TimeoutExpired:
            # Ends every process that it started, too.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            text = f"took longer than {timeout_s} s"
            return Answer(False, None, text, may_go_on=True)
        status = process.returncode
        text = ""
        if status < 0:
            text = f"ended by signal {-status}"
        return Answer(status == 0, status, text)


class Receipt(Transport):
    """One receipt for each invoice, even if a reorganisation has it paid twice.

    A bill's invoice has none: its customer is thanked once the bill is paid.
    """

    def deliveries_for(
        self, receiver: Receiver, event: PublicEvent, about: EventSubject, state: Row
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
