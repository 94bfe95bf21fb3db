"""HTTP/1.1 with keep-alive for one WSGI application on 127.0.0.1.

Flask's own development server closes every connection; a client that polls needs them kept.
"""

import io
import socketserver
import sys
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from flask import Flask

HOST = "127.0.0.1"
IDLE_S = 60  # an idle connection is closed, so that its thread ends
MAX_BODY_BYTES = 100_000  # a form


Headers = list[tuple[str, str]]
Write = Callable[[bytes], object]


class Server(socketserver.ThreadingTCPServer):
    """A listening server: `serve_forever`, `shutdown`, `server_close`, `port`."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, app: Flask, port: int):
        self.app = app
        super().__init__((HOST, port), Handler)

    @property
    def port(self) -> int:
        return self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no event; anything else is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection: as many requests as the client sends on it."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "btcpay-sandbox"
    disable_nagle_algorithm = True
    wbufsize = -1  # buffered: head and body leave in one packet
    timeout = IDLE_S

    def answer(self) -> None:
        """Runs the application on a request whose body is known to its last byte."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers:
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
            return
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        environ = self._environ(self.rfile.read(int(length)))
        started: list[tuple[str, Headers]] = []

        def start_response(status: str, headers: Headers, exc_info: Any = None, /) -> Write:
            started.append((status, headers))
            return _no_write

        parts = self.server.app(environ, start_response)
        self._send(*started[-1], parts)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = answer  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: a poll every second would drown everything else."""

    def _environ(self, body: bytes) -> dict[str, Any]:
        path, _, query = self.path.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(path, "latin-1"),
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "SERVER_NAME": HOST,
            "SERVER_PORT": str(self.server.port),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": self.client_address[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        named = ((name.upper().replace("-", "_"), value) for name, value in self.headers.items())
        return environ | {f"HTTP_{name}": value for name, value in named}

    def _send(self, status: str, headers: Headers, parts: Iterable[bytes]) -> None:
        code, _, reason = status.partition(" ")
        body = b"".join(parts)
        self.send_response(int(code), reason)
        for name, value in headers:
            if name.lower() != "content-length":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _no_write(_data: bytes) -> None:
    raise NotImplementedError("Flask answers with an iterable")
