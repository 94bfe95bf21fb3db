"""A terminal as a program sees it: a pty, and all that was written to it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from pathlib import Path


class InTerminal:
    """A program that runs in a terminal of its own, read by a thread as it writes."""

    def __init__(self, words: list[str], folder: Path, environ: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env=environ,
            start_new_session=True,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self._written = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Until the last one that holds the terminal has closed it, which reads as an error."""
        while True:
            try:
                self._written += os.read(self._ours, 65_536)
            except OSError:
                return

    @property
    def text(self) -> str:
        return re.sub("\x1b\\[K|\r", "", self._written.decode(errors="replace"))

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait(self) -> int:
        """The exit status, once all that was written has been read."""
        status = self.process.wait(60)
        self._reader.join(30)
        os.close(self._ours)
        return status
