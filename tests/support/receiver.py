"""A receiver of webhooks on a real socket, which answers as told and keeps what it was sent."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson
from fake_esplora import Json, Reply, say
from standardwebhooks import Webhook


@dataclass(frozen=True)
class Message:
    """What came: headers by their names in small letters, and the body's bytes."""

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
        """Whatever time it is: the library signs it too."""
        at = datetime.fromtimestamp(int(self.headers["webhook-timestamp"]), UTC)
        return Webhook(secret).sign(self.id, at, self.body.decode()) in self.signatures


class Receiver:
    """Use it as a context manager; `url` is where it listens, `messages` what came.

    `instead` makes the reply to a message; 204 unless it says otherwise.
    """

    def __init__(self, port: int = 0) -> None:
        self.messages: list[Message] = []
        self.instead: Callable[[Message], Reply] = lambda _message: say(b"", 204)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(headers["content-length"]))
                message = Message(headers, body)
                outer.messages.append(message)
                outer.instead(message)(self)

            def do_GET(self) -> None:
                raise AssertionError("a redirect was followed")

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: Any) -> None:
                """The sender hangs up when it has heard enough."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/hooks?token=hunter2"

    @property
    def ids(self) -> list[str]:
        return [message.id for message in self.messages]

    @property
    def kinds(self) -> list[str]:
        return [message.json["type"] for message in self.messages]

    def __enter__(self) -> "Receiver":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
