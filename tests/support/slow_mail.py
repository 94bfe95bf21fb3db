"""A mail server on 127.0.0.1 that takes its time, or goes, where a test says so."""

import socketserver
from collections.abc import Callable
from typing import Any


def at_once() -> bool:
    return True


class SlowMail(socketserver.ThreadingTCPServer):
    """Use it as a context manager. `taken`: the mails that were handed over whole.

    `greet` and `judge` are called before the greeting and before the answer to a whole mail, and
    may wait; where `judge` says False, the server hangs up without an answer. `verdict` is that
    answer.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.taken: list[bytes] = []
        self.recipients: list[str] = []
        self.greet: Callable[[], Any] = at_once
        self.judge: Callable[[], bool] = at_once
        self.verdict = b"250 taken"
        self.url = f"smtp://127.0.0.1:{self.server_address[1]}"


class _Talk(socketserver.StreamRequestHandler):
    server: SlowMail

    def handle(self) -> None:
        self.server.greet()
        self._say(b"220 at last")
        while line := self.rfile.readline():
            word = line.strip().upper()
            if word.startswith(b"RCPT TO:"):
                self.server.recipients.append(line.strip()[8:].decode())
            if word == b"QUIT":
                return
            if word == b"DATA":
                self._say(b"354 go on")
                self.server.taken.append(self._mail())
                if not self.server.judge():
                    return
                self._say(self.server.verdict)
            else:
                self._say(b"250 yes")

    def _mail(self) -> bytes:
        lines = iter(self.rfile.readline, b".\r\n")
        return b"".join(lines)

    def _say(self, line: bytes) -> None:
        self.wfile.write(line + b"\r\n")
