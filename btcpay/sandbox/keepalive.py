"""HTTP/1.1 with keep-alive for one WSGI application on 127.0.0.1.

Flask's own development server closes every connection; a client that polls needs them kept.
"""

import io
import socketserver
import sys
from http import HTTPStatus
from typing import Any

from flask import Flask
from werkzeug.serving import WSGIRequestHandler
from werkzeug.wrappers import Response

HOST = "127.0.0.1"
IDLE_S = 60  # an idle connection is closed, so that its thread ends
MAX_BODY_BYTES = 100_000  # a form


class Server(socketserver.ThreadingTCPServer):
    """A listening server: `serve_forever`, `shutdown`, `server_close`, `port`."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
    ssl_context, multithread, multiprocess = None, True, False  # for werkzeug's handler

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


class Handler(WSGIRequestHandler):
    """One connection: as many requests as the client sends on it."""

    server: Server  # type: ignore[assignment] # it has what the handler asks of werkzeug's own
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # buffered: head and body leave in one packet
    timeout = IDLE_S

    def run_wsgi(self) -> None:
        """Runs the application on a request whose body is known to its last byte."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers:
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
            return
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        environ = self.make_environ() | {"wsgi.input": io.BytesIO(self.rfile.read(int(length)))}
        self._send(Response.from_app(self.server.app, environ))

    def log(self, *_: Any) -> None:
        """Requests are not logged: a poll every second would drown everything else."""

    def _send(self, response: Response) -> None:
        body = response.get_data()
        response.headers["Content-Length"] = str(len(body))
        self.send_response(response.status_code)
        for name, value in response.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
