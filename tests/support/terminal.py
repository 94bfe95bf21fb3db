"""A terminal as a program sees it: a pty, and the screen that its writing makes."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from pathlib import Path

_PIECES = re.compile("\x1b\\[K|[\r\n]|[^\x00-\x1f\x7f]+")


class Screen:
    """Rows of a size that never changes; knows only what a plain program may write.

    Anything else (a tab, another escape) is refused: it would not look alike everywhere.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self.lines = [""]
        self._at = 0

    def write(self, text: str) -> None:
        """Shows what is written at the cursor; what does not fit wraps."""
        assert "".join(_PIECES.findall(text)) == text, f"not for a plain terminal: {text!r}"
        for piece in _PIECES.findall(text):
            if piece == "\r":
                self._at = 0
            elif piece == "\n":
                self.lines.append("")
            elif piece == "\x1b[K":
                self.lines[-1] = self.lines[-1][: self._at]
            else:
                self._print(piece)

    def _print(self, text: str) -> None:
        for letter in text:
            if self._at == self._columns:
                self.lines.append("")
                self._at = 0
            line = self.lines[-1].ljust(self._at)
            self.lines[-1] = line[: self._at] + letter + line[self._at + 1 :]
            self._at += 1

    @property
    def shown(self) -> list[str]:
        """The rows in sight; those above have scrolled away."""
        return self.lines[-self._rows :]

    @property
    def text(self) -> str:
        """The lines in sight, wrapped ones joined again."""
        return "".join(line + ("" if len(line) == self._columns else "\n") for line in self.shown)


class InTerminal:
    """A program that runs in a terminal of its own, read by a thread as it writes."""

    def __init__(
        self, words: list[str], folder: Path, environ: dict[str, str], rows: int, columns: int
    ) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._ours, self.screen = ours, Screen(rows, columns)
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env=environ,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that keys are signals
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Until the last one that holds the terminal has closed it, which reads as an error."""
        while True:
            try:
                written = os.read(self._ours, 65_536)
            except OSError:
                return
            self.screen.write(written.decode())

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """The exit status, once all that was written has been read."""
        status = self.process.wait(30)
        self._reader.join(30)
        os.close(self._ours)
        return status
