"""A thousand shops on PostgreSQL, on this machine alone: `make scale`.

Two web processes behind a pooler, two checks, a receiver for each merchant, payers who poll pages,
orders, and blocks full of our payments. Each block has a fault beside it. What is printed: how long
each block took, the slowest answers meanwhile, what the server's connections waited for, what broke
first, whether the sums agree with the chain and each event was delivered, and the aims.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.scale.fill import AMOUNT_SATS, fill
from tests.scale.world import Chain, Load, Receivers
from tests.support import postgres
from tests.support.builders import TickerServer, answers, clean_environ, until
from tests.support.pooler import Pooler
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer

SERVICE = ("-c", "python:btcpay.web.gunicorn_conf", "wsgi:app")

ROOT = Path(__file__).parents[2]
QUIET = "nothing but orders, looks and reads"
BLOCK = "a block"
FROZEN = "a block while one check is frozen"
SPELL_S = 0.5  # between two looks at what the server waits for


class Program:
    """A process of the service, which can be killed and started anew."""

    def __init__(self, words: list[str], environ: dict[str, str], log: Path) -> None:
        self.words = words
        self.environ = environ
        self.log = log
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *self.words],
                cwd=ROOT,
                env=self.environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def send(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, sign)

    def end(self) -> None:
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
        self.process.wait(30)


def one(url: str, statement: str, *values: Any) -> Any:
    with psycopg.connect(url, connect_timeout=5) as db:
        return db.execute(statement, values).fetchone()[0]  # type: ignore[index]


def waits(url: str, over: threading.Event) -> Counter[str]:
    """Counts the waits of the server's busy connections until that is over."""
    found = Counter[str]()
    while not over.wait(SPELL_S):
        with (
            contextlib.suppress(psycopg.Error),
            psycopg.connect(url, connect_timeout=5) as db,
        ):
            rows = db.execute(
                "SELECT coalesce(wait_event_type || ' ' || wait_event, 'processor'),"
                " left(query, 40)"
                " FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND state <> 'idle'"
            )
            found.update(
                f"{event} ({' '.join(query.split())})" for event, query in rows
            )
    return found


@contextlib.contextmanager
def watched(name: str, url: str, load: Load) -> Iterator[None]:
    """Prints how long the step took, and what it did to those who ask meanwhile."""
    over = threading.Event()
    seen = list[Counter[str]]()
    looking = threading.Thread(
        target=lambda: seen.append(waits(url, over)), daemon=True
    )
    looking.start()
    load.step = name
    before = {kind: len(took) for kind, took in load.took.items()}
    refused = load.refused.copy()
    began_s = time.monotonic()
    yield
    took_s = time.monotonic() - began_s
    over.set()
    looking.join(30)
    print(f"\n{name}: {took_s:.1f} s")
    load.steps[name] = figures = Counter(seconds=took_s)
    for kind, took in load.took.items():
        now = sorted(took[before[kind] :]) or [0.0]
        p99_s = now[len(now) * 99 // 100]
        figures[kind], figures[f"slowest {kind}"] = rate, slowest_s = (
            len(now) / took_s,
            now[-1],
        )
        print(
            f"  {kind}s: {rate:.1f} a second, p99 {p99_s:.2f} s, the slowest {slowest_s:.2f} s"
        )
    for what, count in (load.refused - refused).most_common(4):
        print(f"  not answered: {count} {what}")
    for event, count in (seen[0] if seen else Counter[str]()).most_common(3):
        print(f"  waited for: {count} times {event}")
    sys.stdout.flush()


def is_paid(url: str, chain: Chain) -> bool:
    with contextlib.suppress(psycopg.Error):
        return bool(one(url, "SELECT count(*) FROM payment") == len(chain.paid))
    return False


def is_delivered(url: str) -> bool:
    with contextlib.suppress(psycopg.Error):
        return not one(url, "SELECT count(*) FROM delivery WHERE next_ms IS NOT NULL")
    return False


def verify(url: str, chain: Chain, came: Counter[str], made: list[str]) -> None:
    """The sums agree with the chain to the satoshi, and nothing that was accepted is lost."""
    sats = len(chain.paid) * AMOUNT_SATS
    asked = {
        "payments": "SELECT coalesce(sum(amount_sats), 0) FROM payment",
        "balances": "SELECT sum(total_sats) FROM balance WHERE confirmed_sats = total_sats",
        "settled": "SELECT sum(settled_sats) FROM balance",
        "days": "SELECT coalesce(sum(received_sats), 0) FROM merchant_day",
    }
    sums = {name: int(one(url, statement)) for name, statement in asked.items()}
    paid = one(url, "SELECT count(*) FROM invoice WHERE status = 'paid'")
    assert set(sums.values()) == {sats} and paid == len(chain.paid), (sums, sats, paid)
    with psycopg.connect(url) as db:
        told = {id for (id,) in db.execute("SELECT id FROM public_event")}
        kept = {
            id
            for (id,) in db.execute("SELECT id FROM invoice WHERE id = ANY(%s)", [made])
        }
    assert not told - came.keys(), (
        f"{len(told - came.keys())} events were not delivered"
    )
    assert kept == set(made), f"{len(set(made) - kept)} accepted orders are lost"
    again = sum(count > 1 for count in came.values())
    print(f"\nthe sums agree: {sats} satoshis of {paid} payments, {len(made)} orders")
    print(
        f"{len(told)} events were delivered, {again} of them again, as after a lost answer"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--invoices", type=int, default=1_000_000)
    parser.add_argument("--merchants", type=int, default=1_000)
    parser.add_argument(
        "--payments", type=int, default=1_667, help="of ours in a block"
    )
    parser.add_argument(
        "--within", type=float, default=300, help="seconds for each step"
    )
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        run(options, stack)


def filled(server: postgres.Server, options: argparse.Namespace, receivers: str) -> str:
    """The URL of a database with merchants, their keys, and open invoices."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as db:
        db.execute("CREATE DATABASE scale")
    url = server.url("scale")
    began_s = time.monotonic()
    fill(url, options.merchants, options.invoices, int(time.time() * 1000), receivers)
    took_s = time.monotonic() - began_s
    print(
        f"filled: {options.invoices} invoices of {options.merchants} merchants in {took_s:.0f} s"
    )
    return url


def run(options: argparse.Namespace, stack: contextlib.ExitStack) -> None:
    folder = Path(
        stack.enter_context(tempfile.TemporaryDirectory(prefix="blocktill-scale-"))
    )
    folder.chmod(0o755)
    if not Pooler.PROGRAM:
        sys.exit("needs PgBouncer: apt install pgbouncer")
    server = postgres.Server()
    chain = stack.enter_context(Chain())
    receivers = stack.enter_context(Receivers())
    ticker = stack.enter_context(TickerServer())
    redis = stack.enter_context(RedisServer(folder))
    url = filled(server, options, f"{receivers.root}/")
    pooler = Pooler(server, folder)
    stack.callback(pooler.stop)
    environ = clean_environ(
        BLOCKTILL_NETWORK="regtest",
        BLOCKTILL_DATABASE_URL=url,
        BLOCKTILL_EXPLORERS=chain.root,
        BLOCKTILL_EXPLORER_CALLS_PER_HOUR="10000000",
        BLOCKTILL_PRICE_SOURCES=f"{ticker.url}#/usd",
        BLOCKTILL_CURRENCY_SOURCES=f"{ticker.url}#/{{currency}}",
        BLOCKTILL_RATE_LIMIT_STORE=redis.url,
        BLOCKTILL_METRICS_BIND="",
    )
    ports = [free_port(), free_port()]
    pooled = environ | {"BLOCKTILL_DATABASE_URL": pooler.url("scale")}
    webs = [
        Program(
            ["gunicorn", *SERVICE, "-b", f"127.0.0.1:{port}"],
            pooled,
            folder / f"web{port}",
        )
        for port in ports
    ]
    checks = [
        Program(["btcpay", "check", "--watch", "5"], environ, folder / f"check{number}")
        for number in range(2)
    ]
    for program in (*webs, *checks):
        stack.callback(program.end)
    stack.callback(show_logs, folder)
    load = Load(ports, options.invoices, options.merchants)
    stack.callback(load.end)
    until(lambda: load.made, "the first order", options.within)
    step = Steps(options, url, chain, load)
    with watched(QUIET, url, load):
        time.sleep(10)
    step(BLOCK)
    step("a block while Redis is away", redis.stop)
    redis.start()
    step("a block while a web machine is killed", webs[0].end)
    webs[0].start()
    until(
        lambda: answers(f"http://127.0.0.1:{ports[0]}/healthz"),
        "the web machine to be back",
        options.within,
    )
    step("a block while PostgreSQL restarts", lambda: server.restart("fast"), after_s=1)
    step(FROZEN, lambda: freeze(url, checks))
    for check in checks:
        check.send(signal.SIGCONT)
    replica = postgres.Server(follows=server)
    with psycopg.connect(server.url("postgres"), autocommit=True) as db:
        db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        db.execute("SELECT pg_reload_conf()")
    step("a block with a replica that each commit waits for")
    load.end()
    with watched("the last deliveries", url, load):
        until(lambda: is_delivered(url), "all to be delivered", options.within, 0.5)
    print(f"  not answered in all: {dict(load.refused)}")
    print(f"  what broke first: {load.first_refused}")
    verify(url, chain, receivers.came, load.made)
    fail_over(server, replica, environ, chain, receivers, load)
    show_aims(load, receivers)


def show_aims(load: Load, receivers: Receivers) -> None:
    print()
    quiet = load.steps[QUIET]
    busy = load.steps[BLOCK]
    aim("deliveries in the busiest minute", receivers.most_in_a_minute(), 600)
    for kind in ("look", "read"):
        aim(f"{kind}s beside a block, of their rate", busy[kind] / quiet[kind], 0.5)
    aim("seconds of a block without a fault", -busy["seconds"], -60)
    aim("seconds of the slowest order beside it", -busy["slowest order"], -1)
    frozen_s = load.steps[FROZEN]["seconds"]
    aim("seconds of a block beside a frozen check", -frozen_s, -30)


def aim(name: str, value: float, aim: float) -> None:
    """Below zero for an aim that must not be passed."""
    print(
        f"{name:<40}{abs(value):8.2f}  aim {abs(aim)}  {'met' if value >= aim else 'MISSED'}"
    )


class Steps:
    """Blocks, one after another, each with so many payments to invoices that are still open."""

    def __init__(
        self, options: argparse.Namespace, url: str, chain: Chain, load: Load
    ) -> None:
        self._options = options
        self._url = url
        self._chain = chain
        self._load = load

    def __call__(
        self, name: str, fault: Callable[[], Any] | None = None, after_s: float = 0
    ) -> None:
        first = len(self._chain.paid)
        delivered = self._delivered()
        with watched(name, self._url, self._load):
            self._chain.pay(range(first, first + self._options.payments))
            if fault:
                time.sleep(after_s)
                fault()
            until(
                lambda: is_paid(self._url, self._chain),
                "the payments",
                self._options.within,
                0.1,
            )
        print(f"  deliveries: {self._delivered() - delivered}")

    def _delivered(self) -> int:
        return int(
            one(
                self._url,
                "SELECT count(*) FROM delivery WHERE delivered_ms IS NOT NULL",
            )
        )


def freeze(url: str, checks: list[Program]) -> None:
    """Stops the check whose transaction applies the block, in the middle of it."""
    applying = (
        "SELECT max(client_port) FROM pg_locks JOIN pg_class ON pg_class.oid = relation"
        " JOIN pg_stat_activity USING (pid)"
        " WHERE relname = 'balance' AND mode = 'RowExclusiveLock'"
    )
    port = until(lambda: one(url, applying), "the block to be applied", 120, 0.005)
    listed = subprocess.run(
        ["ss", "-tnpH"], capture_output=True, text=True, check=True
    ).stdout
    (line,) = [
        line for line in listed.splitlines() if line.split()[3].endswith(f":{port}")
    ]
    for check in checks:
        if f"pid={check.process.pid}," in line:
            check.send(signal.SIGSTOP)


def fail_over(
    server: postgres.Server,
    replica: postgres.Server,
    environ: dict[str, str],
    chain: Chain,
    receivers: Receivers,
    load: Load,
) -> None:
    """The server is gone for good, and the replica takes over.

    Without `blocktill restore`, which postgresql.md asks for: it refuses made-up addresses.
    """
    server.stop("immediate")
    began_s = time.monotonic()
    replica.promote()
    url = replica.url("scale")
    with psycopg.connect(replica.url("postgres"), autocommit=True) as db:
        db.execute("ALTER SYSTEM RESET synchronous_standby_names")
        db.execute("SELECT pg_reload_conf()")
    moved = environ | {"BLOCKTILL_DATABASE_URL": url}
    checked = subprocess.run(
        [sys.executable, "-m", "btcpay", "check", "--once"],
        cwd=ROOT,
        env=moved,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    print(f"\nthe replica has taken over in {time.monotonic() - began_s:.1f} s")
    verify(url, chain, receivers.came, load.made)


def show_logs(folder: Path) -> None:
    """The last lines of the logs, where something went wrong."""
    if sys.exc_info()[0] is None:
        return
    for log in sorted(folder.glob("web*")) + sorted(folder.glob("check*")):
        lines = [
            line
            for line in log.read_text().splitlines()
            if '"level":"info"' not in line
        ]
        print(f"--- {log.name}", *lines[-15:], sep="\n")


if __name__ == "__main__":
    main()
