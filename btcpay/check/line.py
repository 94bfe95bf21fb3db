"""Which address is scanned next: several at once, but one that killed a run before, alone."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Todo(NamedTuple):
    """Ids in order, with how often each was scanned before; `alone`: to be scanned alone.

    A run that was killed was scanning several addresses, and one of them killed it.
    """

    scans: Mapping[str, int]
    alone: frozenset[str] = frozenset()


class Line:
    """Gives out `ids`, so that `most` are under way at once; those of `alone` come last."""

    def __init__(self, ids: Iterable[str], alone: frozenset[str], most: int) -> None:
        self._ids, self._alone, self._most = iter(ids), alone, most
        self._kept: list[str] = []

    def take(self, under_way: int) -> list[str]:
        """The ids to begin with now, given how many are under way."""
        taken: list[str] = []
        while under_way + len(taken) < self._most:
            found = self._kept.pop() if self._kept else next(self._ids, None)
            if found is None:
                break
            if found in self._alone and (under_way or taken):
                self._kept.append(found)
                break
            taken.append(found)
            if found in self._alone:
                break
        return taken
