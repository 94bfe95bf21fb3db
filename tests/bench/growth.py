"""What every command and answer costs with a thousand invoices and with a million.

`make bench-growth`; with `--postgresql` on a server of the tests' own. Processor time is the
process's own, memory its peak; a server's are not in it. What prints in proportion takes its time
in proportion, and no more memory.
"""

import argparse
import itertools
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import postgres
import psycopg
from fill import KEYS, fill, invoice_id, secret
from history import add_history
from server import ROOT, Cost, Server, free_port, weigh

from btcpay.merchants.sessions import log_in, new_login
from btcpay.values.times import utc_now
from storage.backup.to_postgres import carry_over
from storage.database import open_database
from storage.queries import merchants

SMALL, LARGE = 1_000, 1_000_000
PAID = 8 * 60 + 1  # the number of an invoice of both that is paid
TIMES = 3  # of a command that is soon done; the least counts
SOON_S = 2
HAS_SAID = "01"  # the doctor has something to say
REQUESTS = 60
# What a reading allows: twice the small shop's, and what a busy machine adds.
MOST_RATIO, NOISE_MS, NOISE_MIB = 1.5, 60, 12

COMMANDS = (
    "invoice list",
    "invoice list --status canceled",
    "invoice list --attention",
    f"invoice show {invoice_id(PAID)}",
    "link list",
    "key list",
    "merchant list",
    "wallet gap bench",
    "wallet export bench",
    "doctor",
    "check --quiet",
)
# These read or print all there is.
WHOLE = (
    "wallet export bench --addresses --count {count}",
    "export payments",
    "export labels",
    "backup {folder}/copy --force --quiet",
)
ANSWERS = {
    "get-invoice": f"GET /api/v1/invoices/{invoice_id(PAID)}",
    "list-invoices": "GET /api/v1/invoices",
    "list-invoices by status": "GET /api/v1/invoices?status=canceled",
    "list-payments": "GET /api/v1/payments",
    "list-payment-links": "GET /api/v1/payment-links",
    "get-balance": "GET /api/v1/balance",
    "create-invoice": "POST /api/v1/invoices",
    "readyz": "GET /readyz",
    "metrics": "GET /metrics",
}
# The merchant's pages, each by its path below /merchant.
PAGES = {
    "today": "",
    "till": "/till",
    "devices": "/sessions",
    "wants attention": "/attention",
    "invoices": "/invoices",
    "paid invoices": "/invoices?status=paid",
    "an invoice by its id": f"/invoices?q={invoice_id(PAID)}",
    "words, searched for": "/invoices?q=no+such+words",
    "an invoice": f"/invoices/{invoice_id(PAID)}",
    "payments": "/payments",
    "links": "/links",
}
PAGE, MOST_PAGE_MS = "page: ", 20
ORDER = '{"amount_usd": 25, "expires_in_hours": 1}'


def least(words: str, environ: dict[str, str]) -> Cost:
    """The least of some rounds; of one, where that takes long."""
    costs = [weigh(words, environ, HAS_SAID)]
    while len(costs) < TIMES and costs[0].cpu_ms < SOON_S * 1000:
        costs.append(weigh(words, environ, HAS_SAID))
    return Cost(min(cost.cpu_ms for cost in costs), max(cost.peak_mib for cost in costs))


def ask_all(environ: dict[str, str]) -> Iterator[tuple[str, Cost]]:
    """A server's processor time for each answer and page; the worker's memory then."""
    db, port, metrics_port = open_database(environ["BTCPAY_DATABASE_URL"]), free_port(), free_port()
    merchant_id, now = db.only(merchants.BY_NAME, name="bench")["id"], utc_now()
    asked = [(name, line, "") for name, line in ANSWERS.items()]
    for name, path in PAGES.items():  # each in a session of its own, for what it may ask
        cookie = f"merchant={log_in(db, new_login(db, merchant_id, now), '', '', now)}"
        asked.append((f"{PAGE}{name}", f"GET /merchant{path}", cookie))
    db.close()
    own = {
        "BTCPAY_BASE_URL": f"http://127.0.0.1:{port}",
        "BTCPAY_METRICS_BIND": f"127.0.0.1:{metrics_port}",
        "BTCPAY_MERCHANT_PAGES": "on",
    }
    numbers = itertools.cycle(range(KEYS))
    with Server(port, ["gunicorn", "wsgi:app"], ROOT, environ | own) as server:
        server.first_answer_s("GET /healthz")
        for name, line, cookie in asked:
            server.port = metrics_port if name == "metrics" else port
            body, scope = (ORDER, "write") if line.startswith("POST") else (None, "read")
            for times in (1, REQUESTS):  # the first warms up
                began_s = server.processor_s()
                for _ in range(times):
                    answer = server.ask(line, secret(scope, next(numbers)), body, cookie)
                    if answer[9:10] not in (b"2", b"3"):
                        raise SystemExit(f"{line}: {answer[:600]!r}")
            cpu_ms = 1000 * (server.processor_s() - began_s) / REQUESTS
            yield name, Cost(cpu_ms, server.memory_mib())


def shop(folder: Path, stored: int, on_server: bool) -> str:
    """A database with so many invoices and their history; its URL."""
    path = folder / f"{stored}.db"
    url = fill(path, stored)
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA synchronous=OFF; PRAGMA cache_size=-1000000;")
        add_history(db)
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if not on_server:
        return url
    url = postgres.server().create()
    db = open_database(url)
    carry_over(path, db)
    db.close()
    path.unlink()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return url


def costs(folder: Path, stored: int, on_server: bool, explorer: str) -> dict[str, Cost]:
    began = time.monotonic()
    url = shop(folder, stored, on_server)
    environ = {
        "BTCPAY_DATABASE_URL": url,
        "BTCPAY_EXPLORERS": explorer,
        "BTCPAY_PRICE_SOURCES": f"{explorer}/price#/usd",
        "BTCPAY_PRICE_QUORUM": "1",
    }
    print(f"{stored:,} stored, filled in {time.monotonic() - began:.0f} s", file=sys.stderr)
    weigh("check --quiet", environ, HAS_SAID)  # finds the chain
    found = {}
    for words in (*COMMANDS, *WHOLE):
        if not (on_server and words.startswith("backup")):  # a server's own programs do that
            found[words] = least(words.format(folder=folder, count=stored // 20), environ)
    return found | dict(ask_all(environ))


def show(name: str, small: Cost, large: Cost) -> bool:
    """One line of the report; whether it is flat, in memory at least."""
    is_slower = large.cpu_ms > MOST_RATIO * small.cpu_ms + NOISE_MS and name not in WHOLE
    is_slower |= name.startswith(PAGE) and large.cpu_ms > MOST_PAGE_MS
    is_larger = large.peak_mib > small.peak_mib + NOISE_MIB
    grows = ", ".join(["time"] * is_slower + ["memory"] * is_larger)
    print(
        f"{name.partition(' {')[0]:44}"
        f"{small.cpu_ms:9.1f}{large.cpu_ms:10.1f}{large.cpu_ms / max(small.cpu_ms, 0.1):8.1f}"
        f"{small.peak_mib:9.0f}{large.peak_mib:7.0f}  {grows}",
        flush=True,
    )
    return not grows


def main() -> None:
    """Prints the table; exit status 1 when something grows that should not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgresql", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
        port = free_port()
        chain = ["btcpay.sandbox", "--port", str(port), "--state", str(folder / "chain")]
        server = stack.enter_context(Server(port, chain, ROOT, {}))
        server.first_answer_s("GET /blocks/tip/hash")
        explorer = f"http://127.0.0.1:{port}"
        small, large = (
            costs(folder, stored, options.postgresql, explorer) for stored in (SMALL, LARGE)
        )
        print(f"{'':44}{'ms':>9}{'ms':>10}{'ratio':>8}{'MiB':>9}{'MiB':>7}")
        flat = [show(name, small[name], large[name]) for name in small]
    sys.exit(not all(flat))


if __name__ == "__main__":
    main()
