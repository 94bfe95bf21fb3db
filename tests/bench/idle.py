"""What `blocktill run` takes from its machine while nothing happens: a part of `make bench`.

A shop with one merchant and no order, and an explorer that shows no new block for some minutes, and
then some blocks. What is printed are an hour and a day with a block every ten minutes, beside the
aims: processor time, memory (the proportional set size, PSS), and what is written to the disk.

What its start and the time until it has settled take is printed too, but not part of an hour. It
counts ever more calls to explorers in advance, until it does so twice an hour.
"""

import argparse
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.bench.processors import descendants
from tests.scale.world import Chain
from tests.support.builders import (
    TickerServer,
    answers,
    clean_environ,
    new_xpub,
    until,
)
from tests.support.ports import free_port
from tests.support.processes import name_of

HOUR_S = 3600
DAY_H = 24
BLOCKS_PER_HOUR = 6
# After a block is stored, until its check is over.
STORED_S = 3
ON_DISK = "/var/tmp"  # the usual folder may be in memory
KB = 1024
MB = 1_000_000
MOST_PROCESSOR_S = 2.0
MOST_MEMORY_MB = 100.0
MOST_WRITTEN_MB = 5.0


@dataclass(frozen=True)
class Use:
    """What processes have taken: seconds, bytes, and how often they were woken.

    `written` are whole pages of files, as the kernel counts them (proc_pid_io(5)).
    """

    processor_s: float = 0
    written: float = 0
    wakeups: float = 0

    @classmethod
    def of(cls, pid: int) -> Self:
        # The clock of another process (clock_getcpuclockid(3)) counts its ended threads too.
        processor_s = time.clock_gettime((~pid << 3) | 2)
        written = number_in(Path(f"/proc/{pid}/io"), "write_bytes")
        tasks = Path(f"/proc/{pid}/task").glob("*/status")
        wakeups = sum(number_in(task, "voluntary_ctxt_switches") for task in tasks)
        return cls(processor_s, written, wakeups)

    def __add__(self, other: "Use") -> "Use":
        return Use(
            self.processor_s + other.processor_s,
            self.written + other.written,
            self.wakeups + other.wakeups,
        )

    def __mul__(self, factor: float) -> "Use":
        return Use(
            self.processor_s * factor, self.written * factor, self.wakeups * factor
        )

    def __sub__(self, other: "Use") -> "Use":
        return self + other * -1

    def __str__(self) -> str:
        return (
            f"{self.processor_s:6.2f} s, {self.written / 1000:7.0f} kB written,"
            f" {self.wakeups:6.0f} wakeups"
        )


def number_in(file: Path, name: str) -> int:
    """The number in the line of this name, such as `Pss:   1234 kB`; 0 for a thread that ended."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(values[name].split()[0])


def resident_kb_by_file(pid: int) -> Counter[str]:
    """How much of each mapped file is in memory, from /proc/PID/smaps."""
    resident_kb = Counter[str]()
    file = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            file = words[-1]  # the line of a mapping ends with its file, if it has one
        elif words[0] == "Rss:" and file.startswith("/"):
            resident_kb[file] += int(words[1])
    return resident_kb


class IdleShop:
    """`blocktill run` with its family of processes, a chain, and a price."""

    def __init__(self, folder: Path, chain: Chain, price: str) -> None:
        self.chain = chain
        self._file = folder / "blocktill.db"
        self._port = free_port()
        self._environ = clean_environ(
            BLOCKTILL_NETWORK="regtest",
            BLOCKTILL_DATABASE_URL=f"sqlite:///{self._file}",
            BLOCKTILL_BIND=f"127.0.0.1:{self._port}",
            BLOCKTILL_METRICS_BIND=f"127.0.0.1:{free_port()}",
            BLOCKTILL_EXPLORERS=chain.root,
            BLOCKTILL_PRICE_SOURCES=f"{price}#/usd",
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        add = ["merchant", "add", "shop", "--xpub", new_xpub(), "--yes"]
        for words in (["migrate"], add):
            command = [sys.executable, "-m", "btcpay", *words]
            subprocess.run(command, env=self._environ, capture_output=True, check=True)
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "btcpay", "run"],
                env=self._environ,
                stdout=log,
                stderr=log,
            )
            try:
                self.pid = process.pid
                until(
                    lambda: answers(f"http://127.0.0.1:{self._port}/healthz"),
                    "the service",
                )
                self.await_tip()
                yield
            finally:
                process.terminate()
                process.wait(60)

    def processes(self) -> dict[str, int]:
        """The pids of its processes by name."""
        pids = {}
        for pid in [self.pid, *descendants(self.pid)]:
            name = name_of(pid)
            if name == "till-check":
                pids["check"] = pid
            elif name != "till-service":
                pids.setdefault("run", pid)  # and not the shell that outlives it
            elif "gunicorn" in pids:
                pids["its worker"] = pid
            else:
                pids["gunicorn"] = pid
        return pids

    def uses(self) -> dict[str, Use]:
        return {name: Use.of(pid) for name, pid in self.processes().items()}

    def use(self) -> Use:
        return sum(self.uses().values(), Use())

    def memory_mb(self) -> dict[str, float]:
        memory: dict[str, float] = {}
        for name, pid in self.processes().items():
            file = Path(f"/proc/{pid}/smaps_rollup")
            memory[name] = number_in(file, "Pss") * KB / MB
        return memory

    def memory_alone_mb(self) -> float:
        """The memory of all, if no other program used the same libraries.

        That is the anonymous memory, and of each file the most that a process holds.
        """
        anonymous_kb = 0
        most_kb = Counter[str]()
        for pid in self.processes().values():
            anonymous_kb += number_in(Path(f"/proc/{pid}/smaps_rollup"), "Pss_Anon")
            most_kb |= resident_kb_by_file(pid)
        return (anonymous_kb + most_kb.total()) * KB / MB

    def await_tip(self) -> None:
        until(lambda: self._height() == self.chain.tip, "the newest block", every_s=1)

    def _height(self) -> int:
        with closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT max(height) FROM block").fetchone()[0] or 0)


def measure(settling: float, minutes: float, blocks: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="blocktill-idle-", dir=ON_DISK) as folder,
        Chain() as chain,
        TickerServer() as ticker,
    ):
        shop = IdleShop(Path(folder), chain, ticker.url)
        with shop.running():
            time.sleep(settling * 60)
            start = shop.use()
            before = shop.uses()
            time.sleep(minutes * 60)
            by_process = shop.uses()
            hours = minutes / 60
            for name, use in by_process.items():
                by_process[name] = (use - before[name]) * (1 / hours)
            memory_mb = shop.memory_mb()
            memory_alone_mb = shop.memory_alone_mb()
            quiet = sum(by_process.values(), Use())
            of_block = Use()
            for _ in range(blocks):
                of_block += use_of_block(shop, quiet) * (1 / blocks)
    print(f"\nan idle shop: start and {settling:g} minutes took{start}")
    print(f"then an hour, as in {minutes:g} minutes and {blocks} blocks")
    for name, use in by_process.items():
        print(f"  {name:<18}{use}, {memory_mb[name]:5.1f} MB")
    print(f"  {'a block':<18}{of_block}")
    hour = quiet + of_block * BLOCKS_PER_HOUR
    show("processor seconds an hour", hour.processor_s, MOST_PROCESSOR_S)
    show("MB of memory (PSS)", sum(memory_mb.values()), MOST_MEMORY_MB)
    print(f"  (if nothing else used its libraries: {memory_alone_mb:.0f} MB)")
    show("MB written a day", hour.written * DAY_H / MB, MOST_WRITTEN_MB)


def use_of_block(shop: IdleShop, quiet_hour: Use) -> Use:
    """What one new block takes, beyond the time that passes until it is stored."""
    before = shop.use()
    began_s = time.monotonic()
    shop.chain.pay(range(0))
    shop.await_tip()
    time.sleep(STORED_S)
    passed_s = time.monotonic() - began_s
    return shop.use() - before - quiet_hour * (passed_s / HOUR_S)


def show(name: str, value: float, most: float) -> None:
    verdict = "met" if value <= most else "MISSED"
    print(f"  {name:<40}{value:8.2f}  aim <= {most:.0f}  {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settling", type=float, default=16)
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--blocks", type=int, default=6)
    options = parser.parse_args()
    measure(options.settling, options.minutes, options.blocks)


if __name__ == "__main__":
    main()
