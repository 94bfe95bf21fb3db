"""The tests' own servers, which answer as told, on a real socket."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Reply = Callable[[BaseHTTPRequestHandler], None]


def say(body: Any, status: int = 200, **headers: str) -> Reply:
    """A complete answer; anything but text and bytes goes out as JSON."""
    named = {
        "Content-Type": "text/plain"
        if isinstance(body, str)
        else "application/octet-stream"
    }
    if not isinstance(body, str | bytes):
        body = json.dumps(body)
        named = {"Content-Type": "application/json"}
    raw = body.encode() if isinstance(body, str) else body

    def reply(handler: BaseHTTPRequestHandler) -> None:
        # without a Date: the test's clock is another
        handler.send_response_only(status)
        for name, value in (
            {"Content-Length": str(len(raw))} | named | headers
        ).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)

    return reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is what is tested."""


class Serving:
    """Use it as a context manager; `root` is its URL, `headers` are added to each answer."""

    headers: Callable[[], dict[str, str]] = dict

    def __init__(self, port: int = 0) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1  # head and body leave together

            def do_GET(self) -> None:
                outer.answer(self)(self)

            do_POST = do_GET

            def end_headers(self) -> None:
                for name, value in outer.headers().items():
                    self.send_header(name, value)
                super().end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.root = f"http://127.0.0.1:{self.port}"

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        """The reply to this request."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        ).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


class Listening:
    """Meets each client in a thread; a context manager, at whose end `released` is set."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def meet(self, client: socket.socket) -> None:
        raise NotImplementedError

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while not self.released.is_set():
                self._open.append(self._listener.accept()[0])
                threading.Thread(
                    target=self._meet, args=self._open[-1:], daemon=True
                ).start()

    def _meet(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, ValueError, IndexError):
            self.meet(client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.released.set()
        for sock in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
