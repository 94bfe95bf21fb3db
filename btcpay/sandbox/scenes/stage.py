"""The stage for scenes: one at a time, in a thread of its own, shown line by line."""

import threading
import time
from collections.abc import Callable, Iterator

from btcpay.sandbox.errors import SandboxError
from btcpay.sandbox.shop import Json

# A line stays until it can have been read aloud, except in a scene that is played quickly.
FIRST_S = 1.5
CHARACTERS_PER_S = 28
WITHIN_S = 60  # of real time, for each thing that has to happen
LOOKS_EVERY_S = 0.4


class Stopped(SandboxError):
    """The scene was ended, or another one begun."""


class Stage:
    """Thread safe: only the scene that plays changes what is shown."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._turn = (
            threading.RLock()
        )  # the second of two presses ends the first's scene
        self._thread: threading.Thread | None = None
        self._view: Json = {}
        self.quick = False
        self._read_at_s = 0.0

    def view(self) -> Json | None:
        """The newest scene, if any; its `state` is playing, over, stopped or failed."""
        return self._view or None

    def start(
        self, name: str, title: str, story: Iterator[str], quick: bool = False
    ) -> None:
        """Shows the story's lines, between which it plays; a scene that still plays is stopped."""
        with self._turn:
            self.stop()
            self._stop.clear()
            self.quick = quick
            self._read_at_s = 0.0
            opening = {"name": name, "title": title, "state": "playing"}
            self._view = {**opening, "lines": [], "problem": None, "invoice": None}
            self._thread = threading.Thread(
                target=self._play, args=(story,), daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        with self._turn:
            self._stop.set()
            if self._thread:
                self._thread.join()

    # Called by scenes.

    def show(self, invoice: Json) -> None:
        shown = {name: invoice[name] for name in ("id", "pay_url")}
        self._view = self._view | {"invoice": shown}

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Waits until `holds`. Raises SandboxError after a minute, or Stopped."""
        end_s = time.monotonic() + WITHIN_S
        while not holds():
            if time.monotonic() > end_s:
                raise SandboxError(f"waited in vain for {what}; the log says more")
            self._wait(LOOKS_EVERY_S)

    def _say(self, text: str) -> None:
        """The next line, once the one before could be read."""
        self._wait(self._read_at_s - time.monotonic())
        self._view = self._view | {"lines": [*self._view["lines"], text]}
        reading_s = 0 if self.quick else FIRST_S + len(text) / CHARACTERS_PER_S
        self._read_at_s = time.monotonic() + reading_s

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(max(0, seconds)):
            raise Stopped("stopped")

    def _play(self, story: Iterator[str]) -> None:
        state = "failed"
        problem = "an error of the sandbox; the log says more"
        try:
            for line in story:
                self._say(line)
            self._wait(self._read_at_s - time.monotonic())
            state = "over"
            problem = ""
        except Stopped:
            state = "stopped"
            problem = ""
        except SandboxError as error:
            problem = str(error)
        finally:
            self._view = self._view | {"state": state, "problem": problem or None}
