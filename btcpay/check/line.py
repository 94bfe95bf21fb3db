"""Who is looked at next: several at once, but one alone whom an earlier run did not survive."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Todo(NamedTuple):
    """Ids in order, with how often each was looked at before; `alone`: to be looked at alone.

    A run that was killed was looking at several addresses, of which one did it.
    """

    looks: Mapping[str, int]
    alone: frozenset[str] = frozenset()


class Line:
    """Takes from `ids` so that `most` are under way; those of `alone` are its last."""

    def __init__(self, ids: Iterable[str], alone: frozenset[str], most: int) -> None:
        self._ids, self._alone, self._most = iter(ids), alone, most
        self._kept: list[str] = []

    def take(self, under_way: int) -> list[str]:
        """Those to begin with now, while so many are under way."""
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
