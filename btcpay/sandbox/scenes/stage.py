"""Runs one scene at a time, in its own thread, and shows its lines one by one."""

import threading
import time
from collections.abc import Callable, Iterator

from btcpay.sandbox.errors import SandboxError
from btcpay.sandbox.shop import Json

# A line is shown once a person could have read the previous one aloud. A quick scene
# shows it at once.
FIRST_S = 1.5
CHARACTERS_PER_S = 28
WITHIN_S = 60  # real seconds, for each condition of a scene
LOOKS_EVERY_S = 0.4


class Stopped(SandboxError):
    """The scene was stopped, or another one was started."""


class Stage:
    """Runs scenes, one at a time, and has the state of the newest scene for the page.

    The methods may be called by any thread. Only the running scene changes its state.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        # If two starts are concurrent, the second one stops the scene of the first one.
        self._start_lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._view: Json = {}
        self.quick = False
        self._read_at_s = 0.0

    def view(self) -> Json | None:
        """Returns the newest scene as JSON; None if no scene was started yet.

        Its `state` is playing, over, stopped or failed.
        """
        return self._view or None

    def start(
        self,
        name: str,
        title: str,
        story: Iterator[str],
        quick: bool = False,
    ) -> None:
        """Starts a scene, and stops the one that is running.

        `story` is a generator: it yields the lines to show, and does the scene's
        actions between them. If `quick` is True, there are no pauses for reading.
        """
        with self._start_lock:
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
        with self._start_lock:
            self._stop.set()
            if self._thread:
                self._thread.join()

    # The methods below are called by scenes.

    def show(self, invoice: Json) -> None:
        """Shows the invoice's page beside the scene's lines."""
        link = {"id": invoice["id"], "pay_url": invoice["pay_url"]}
        self._view = self._view | {"invoice": link}

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Waits until `holds()` is true. `what` describes the condition in the error message.

        Raises SandboxError after a minute, and Stopped if the scene is stopped
        meanwhile.
        """
        end_s = time.monotonic() + WITHIN_S
        while not holds():
            if time.monotonic() > end_s:
                raise SandboxError(f"waited in vain for {what}; the log says more")
            self._wait(LOOKS_EVERY_S)

    def _say(self, text: str) -> None:
        """Shows the next line, after the time to read the previous one."""
        self._wait(self._read_at_s - time.monotonic())
        self._view = self._view | {"lines": [*self._view["lines"], text]}
        self._read_at_s = time.monotonic()
        if not self.quick:
            self._read_at_s += FIRST_S + len(text) / CHARACTERS_PER_S

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(max(0, seconds)):
            raise Stopped("stopped")

    def _play(self, story: Iterator[str]) -> None:
        """Runs the scene to its end, and stores its final state."""
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
