"""One commit for what several threads write at once: each commit waits for the disk."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from storage.turns import Turn

T = TypeVar("T")
Transaction = Callable[[], AbstractContextManager[None]]


class _Work:
    """What a thread wants written; `is_done` when that is on the disk."""

    def __init__(self, do: Callable[[], Any]) -> None:
        self.do = do
        self.was_tried = self.is_done = False
        self.answer: Any = None


class GroupCommit:
    """While one thread waits for the disk, others queue; the next one writes for all of them.

    `turn` lets one thread write at a time, and is held until its commit is on the disk.
    """

    def __init__(self, turn: Turn, transaction: Transaction) -> None:
        self._turn, self._transaction = turn, transaction
        self._waiting: deque[_Work] = deque()

    def run(self, do: Callable[[], T]) -> T:
        """What `do` returns once that is on the disk. It may run in another thread, and twice.

        Raises what it raises, and then nothing of it is stored.
        """
        mine, asked_s = _Work(do), time.monotonic()
        with self._turn.places:
            self._waiting.append(mine)
            with self._turn.lock:
                if not mine.was_tried and self._turn.has_failed_since(asked_s):
                    self._waiting.remove(mine)
                elif not mine.was_tried:
                    self._try_all()
                if mine.is_done:
                    answer: T = mine.answer
                    return answer
                self._turn.refuse_behind_failure(asked_s)
                with self._transaction():
                    return do()

    def _try_all(self) -> None:
        """Writes for all who wait, or for none: then each writes by itself, and sees why."""
        works = [self._waiting.popleft() for _ in range(len(self._waiting))]
        for work in works:
            work.was_tried = True
        if len(works) == 1:
            return
        try:
            with self._transaction():
                for work in works:
                    work.answer = work.do()
        except Exception:  # noqa: BLE001  it belongs to one of them, who meets it again
            return
        for work in works:
            work.is_done = True
