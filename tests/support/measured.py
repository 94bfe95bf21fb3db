"""The real `blocktill check`, and what its process held at its peak.

As a script this file is what those processes come from (see forge.py), which load nothing else.
"""

import atexit
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from btcpay.cli.check import check as command
from tests.support.forge import Forge, fork_for_each_order, program
from tests.support.playground import children_of

# The part of its libraries' files that a new process has in memory, and a forked one shares.
LIBRARIES_MB = 10
forge = cache(lambda: Forge(__file__))


def check(till: Any, folder: Path) -> tuple[dict[str, Any], float]:
    """The answer of `blocktill check --json`, and its peak memory in megabytes."""
    ended = forge().run(till.shop.environ, ["check", "--json"], folder=str(folder))
    assert ended.output, ended.errors
    (peak_kb,) = re.findall(r"VmHWM:\s+([0-9]+) kB", (folder / "status").read_text())
    return json.loads(ended.output), int(peak_kb) / 1024 + LIBRARIES_MB


def peak_bytes(pid: int) -> int:
    """The most memory that this process or one that it started ever had."""
    peaks = []
    for process in (pid, *children_of(pid)):
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
        (peak_kb,) = re.findall(r"VmHWM:\s+([0-9]+) kB", status)
        peaks.append(int(peak_kb) * 1024)
    return max(peaks)


def run(order: dict[str, Any]) -> None:
    """One run that stays for nobody; writes at its end what the kernel knows of the process."""
    said = Path("/proc/self/status")
    atexit.register(lambda: Path("status").write_bytes(said.read_bytes()))
    program(order)


if __name__ == "__main__":
    command.STAYS_S = 0
    fork_for_each_order(run)
