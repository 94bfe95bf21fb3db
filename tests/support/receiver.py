"""A receiver of webhooks on a real socket, which answers as told and keeps what it was sent."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler

import orjson
from standardwebhooks import Webhook

from tests.support.fake_esplora import Json
from tests.support.serving import Reply, Serving, say


@dataclass(frozen=True)
class Message:
    """A request: its headers by their names in small letters, and the body's bytes."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Json:
        return orjson.loads(self.body)

    @property
    def signatures(self) -> list[str]:
        return self.headers["webhook-signature"].split(" ")

    def verify(self, secret: str) -> Json:
        """As a receiver of this moment does, by the library of Standard Webhooks."""
        return Webhook(secret).verify(self.body, self.headers)

    def is_signed_by(self, secret: str) -> bool:
        """True if it bears the signature that the library makes; its time is not judged."""
        at = datetime.fromtimestamp(int(self.headers["webhook-timestamp"]), UTC)
        return Webhook(secret).sign(self.id, at, self.body.decode()) in self.signatures


class Receiver(Serving):
    """`url` is where it listens, `messages` what came; `instead` replies, 204 unless it differs."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.messages: list[Message] = []
        self.instead: Callable[[Message], Reply] = lambda _message: say(b"", 204)
        self.url = f"{self.root}/hooks?token=hunter2"

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        assert request.command == "POST", "a redirect was followed"
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = request.rfile.read(int(headers["content-length"]))
        self.messages.append(Message(headers, body))
        return self.instead(self.messages[-1])

    @property
    def ids(self) -> list[str]:
        return [message.id for message in self.messages]

    @property
    def kinds(self) -> list[str]:
        return [message.json["type"] for message in self.messages]
