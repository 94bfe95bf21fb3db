"""How much processor time others took meanwhile (proc(5)): noise in what is measured."""

import os
import time
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Foreign:
    """The share of this machine's processors that processes other than these had.

    `roots` are pids; what they started counts as theirs.
    """

    def __init__(self, *roots: int) -> None:
        self._roots = roots
        self._began_s = time.monotonic()
        self._busy_s = busy_s()
        self._own_s = own_s(roots)

    def share(self) -> float:
        """From 0 to 1, since this was made."""
        whole_s = (time.monotonic() - self._began_s) * (os.cpu_count() or 1)
        busy = busy_s() - self._busy_s
        own = own_s(self._roots) - self._own_s
        return max(busy - own, 0) / whole_s


def busy_s() -> float:
    """Processor seconds that were used since the machine started, also by other machines on it."""
    line = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _idle, _wait, _irq, _softirq, steal = map(
        int, line.split()[1:9]
    )
    return (user + nice + system + steal) / TICKS_PER_S


def own_s(roots: tuple[int, ...]) -> float:
    """Processor seconds of these processes and of all that they started."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # it has ended
            continue
        fields = stat.rpartition(")")[2].split()
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))  # with children that have ended
    total = 0
    for pid in ticks:
        ancestor = pid
        while ancestor and ancestor not in roots:
            ancestor = parents.get(ancestor, 0)
        if ancestor:
            total += ticks[pid]
    return total / TICKS_PER_S


def descendants(root: int) -> list[int]:
    """The pids of all that this process has started, and of what those have."""
    pids: list[int] = []
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            pids += [child, *descendants(child)]
    return pids
