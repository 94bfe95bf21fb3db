"""A real Redis (or Valkey) on a free port; it can go away, hang, and come back."""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import until
from tests.support.ports import free_port

BINARY = shutil.which("redis-server") or shutil.which("valkey-server")
# `.ci/run` has installed Redis: in it these tests never skip.
needs_redis = pytest.mark.skipif(
    BINARY is None and "CI_RUN" not in os.environ,
    reason="no redis-server on this machine",
)


class RedisServer:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self.start()

    def start(self) -> None:
        """Empty, as it would be after a crash: nothing is kept on disk."""
        assert BINARY is not None, "redis-server is missing"
        words = [BINARY, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                words, cwd=self._folder, stdout=log, stderr=log
            )
        until(self.answers, "Redis to answer")

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def hang(self) -> None:
        """Connections are still accepted, by the kernel; nothing is answered."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> "RedisServer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()
