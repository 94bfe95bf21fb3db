"""The examples of nginx and Caddy in deploy/, between free ports of this machine."""

import contextlib
import http.client
import json
import os
import re
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.builders import until
from tests.support.paths import PROJECT
from tests.support.ports import free_port, is_open
from tests.support.programs import certificate, done, tool

DEPLOY = PROJECT / "deploy"


@dataclass(frozen=True)
class Proxy:
    """A proxy's program and its port, with TLS or without; nginx listens without on `plain` too."""

    words: list[Any]
    folder: Path
    port: int
    has_tls: bool
    plain: int = 0

    def connect(self, source: str = "127.0.0.1") -> http.client.HTTPConnection:
        """From this address of the loopback, which has many."""
        to = ("127.0.0.1", self.port)
        options: dict[str, Any] = {"timeout": 20, "source_address": (source, 0)}
        if not self.has_tls:
            return http.client.HTTPConnection(*to, **options)
        return http.client.HTTPSConnection(
            *to, **options, context=ssl._create_unverified_context()
        )

    def ask(
        self,
        method: str,
        path: str,
        source: str = "127.0.0.1",
        body: Any = None,
        **headers: str,
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Status, headers and body; the path is sent as it is written."""
        data = (
            body
            if body is None or isinstance(body, bytes)
            else json.dumps(body).encode()
        )
        with contextlib.closing(self.connect(source)) as connection:
            sent = {"Content-Type": "application/json"} if data else {}
            connection.request(method, path, data, sent | headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    @contextlib.contextmanager
    def running(self) -> Iterator["Proxy"]:
        environ = os.environ | {"HOME": str(self.folder)}
        with subprocess.Popen(
            self.words, env=environ, stderr=subprocess.DEVNULL
        ) as process:
            try:
                until(lambda: is_open(self.port), "the proxy to listen")
                yield self
            finally:
                process.terminate()


def replaced(text: str, *changes: tuple[str, str, int]) -> str:
    """The text with each change made as often as it must stand there."""
    for old, new, times in changes:
        assert text.count(old) == times, old
        text = text.replace(old, new)
    return text


def nginx(folder: Path, upstream: int) -> Proxy:
    """Certificate and folders are its own."""
    plain = free_port()
    tls = free_port()
    certificate(folder)
    site = replaced(
        (DEPLOY / "nginx.conf").read_text(),
        ("listen 80;", f"listen 127.0.0.1:{plain};", 1),
        ("listen 443 ssl;", f"listen 127.0.0.1:{tls} ssl;", 1),
        ("127.0.0.1:8000", f"127.0.0.1:{upstream}", 1),
        ("/etc/letsencrypt/live/pay.example.com", str(folder), 2),
    )
    return Proxy(_nginx_words(folder, site), folder, tls, True, plain)


def onion(folder: Path, upstream: int) -> Proxy:
    """Without a certificate, as Tor asks it."""
    port = free_port()
    site = replaced(
        (DEPLOY / "onion.conf").read_text(),
        ("listen 127.0.0.1:8080;", f"listen 127.0.0.1:{port};", 1),
        ("127.0.0.1:8000", f"127.0.0.1:{upstream}", 1),
    )
    return Proxy(_nginx_words(folder, site), folder, port, False)


def _nginx_words(folder: Path, site: str) -> list[Any]:
    """The command that serves this site from a folder."""
    (folder / "site.conf").write_text(site)
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{name}_temp_path {folder}/{name};" for name in names)
    (folder / "nginx.conf").write_text(
        f"{'user root;' if os.geteuid() == 0 else ''} pid {folder}/pid; daemon off;"
        f"error_log {folder}/error.log; worker_processes 1; events {{}}"
        f"http {{ access_log {folder}/access.log; {temporary} include {folder}/site.conf; }}"
    )
    return [
        tool("nginx"),
        "-p",
        folder,
        "-e",
        folder / "error.log",
        "-c",
        folder / "nginx.conf",
    ]


def caddyfile() -> str:
    """The example as it is for Debian's and Ubuntu's Caddy, for a newer one as its comment says."""
    text = (DEPLOY / "Caddyfile").read_text()
    if re.match(r"v?2\.6\.2\b", done([tool("caddy"), "version"])):
        return text
    assert "request_buffers 1MB" in text
    old = "buffer_requests\n\t\tmax_buffer_size 1MB"
    return replaced(text, (old, "request_buffers 1MB", 1))


def caddy(folder: Path, upstream: int) -> Proxy:
    """Without a certificate."""
    port = free_port()
    text = replaced(
        caddyfile(),
        ("pay.example.com {", f"http://127.0.0.1:{port} {{", 1),
        ("127.0.0.1:8000", f"127.0.0.1:{upstream}", 1),
    )
    (folder / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\n{text}")
    words = [
        tool("caddy"),
        "run",
        "--adapter",
        "caddyfile",
        "--config",
        folder / "Caddyfile",
    ]
    return Proxy(words, folder, port, False)
