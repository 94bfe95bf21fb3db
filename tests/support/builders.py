"""The parts of a test: a clock, a ticker, a shop. A test names only those that matter to it."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import requests
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import create_app
from btcpay.check.apply import apply
from btcpay.invoices import history
from btcpay.merchants import keys
from btcpay.merchants.merchants import add_merchant
from btcpay.settings import settings
from btcpay.settlement.values import Block, Scan, SeenOutput
from btcpay.values.ids import random_base62, sha256_of
from btcpay.values.networks import NETWORKS, Network
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import to_ms
from btcpay.web.service import Service
from storage import versions
from storage.queries import blocks, invoices
from storage.queries.lists import mempool_watch
from storage.queries.totals import balances
from tests.support.account_texts import account_of
from tests.support.databases import new_database, raw, tables
from tests.support.forge import Process, forge
from tests.support.hd_wallet import TPUB, XPUB, HdWallet
from tests.support.serving import Reply, Serving, say

REGTEST = NETWORKS["regtest"]


class Clock:
    """Stands still at the moment it was made, until it is moved."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC).replace(microsecond=0)

    def __call__(self) -> datetime:
        return self.at

    def move(self, **delta: float) -> None:
        """Forward, or back with negative values; keywords as of timedelta."""
        self.at += timedelta(**delta)


class Seconds:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.at_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at_s


class TickerServer(Serving):
    """A price source on 127.0.0.1; `body` and `status` are what it answers, `asked` how often.

    In `silent` it keeps its answers back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.url = f"{self.root}/"
        self._may_answer = threading.Event()
        self.reset()

    def answer(self, _request: BaseHTTPRequestHandler) -> Reply:
        self.asked += 1
        self._may_answer.wait(60)
        return say(self.body, self.status)

    def reset(self) -> None:
        self.status = 200
        self.asked = 0
        self._may_answer.set()
        self.price("60000.00")

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Answers nobody inside; who has asked is answered at its end."""
        self._may_answer.clear()
        try:
            yield
        finally:
            self._may_answer.set()

    def price(self, usd: str, **others: str) -> None:
        self.body = json.dumps({"usd": usd} | others).encode()


def new_xpub(network: Network = REGTEST) -> str:
    """The BIP84 account key of a wallet that nobody has.

    The point is always the same, and the chain code makes each another key.
    """
    version, account = _account(network.name == "mainnet")
    return replace(account, chain_code=os.urandom(32)).xpub(version)


@cache
def _account(is_mainnet: bool) -> tuple[bytes, HdWallet]:
    version, coin = (XPUB, 0) if is_mainnet else (TPUB, 1)
    return version, HdWallet.from_seed(os.urandom(32)).at(f"m/84'/{coin}'/0'")


@dataclass
class Shop:
    """A service in this process, with its first merchant's keys."""

    app: Flask
    service: Service
    clock: Clock
    environ: dict[str, str]
    merchant_id: int = 0
    write_key: str = ""
    read_key: str = ""
    key_ids: dict[str, str] = field(default_factory=dict)

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    def add_merchant(self, name: str) -> int:
        network = self.service.settings.network
        account = account_of(new_xpub(network), network)
        return add_merchant(self.service.db, name, account, self.clock()).id

    def issue(self, scope: str, merchant_id: int | None = None) -> str:
        """A new key's secret; of the first merchant unless another is named."""
        network = self.service.settings.network
        owner_id = merchant_id or self.merchant_id
        issued = keys.issue(self.service.db, network, owner_id, scope, "", self.clock())
        self.key_ids[issued.secret] = issued.id
        return issued.secret

    def get(self, path: str, key: str | None = None, **kwargs: Any) -> TestResponse:
        """GET below /api/v1, with the read key unless another is given ("" for none)."""
        return self._ask("GET", path, self.read_key if key is None else key, kwargs)

    def post(
        self, path: str, json: Any = None, key: str | None = None, **kwargs: Any
    ) -> TestResponse:
        """POST below /api/v1, with the write key unless another is given ("" for none)."""
        if json is not None:
            kwargs["json"] = json
        return self._ask("POST", path, self.write_key if key is None else key, kwargs)

    def _ask(
        self, method: str, path: str, key: str, kwargs: dict[str, Any]
    ) -> TestResponse:
        headers = dict(kwargs.pop("headers", {}))
        if key:
            headers.setdefault("Authorization", f"Bearer {key}")
        return self.client.open(
            f"/api/v1{path}", method=method, headers=headers, **kwargs
        )

    def invoice(self, amount_usd: float = 25, **fields: Any) -> dict[str, Any]:
        """Creates an invoice, with a key of its own so that no test runs into the limit."""
        response = self.post(
            "/invoices", {"amount_usd": amount_usd} | fields, self.issue("write")
        )
        assert response.status_code == 201, response.text
        return response.json

    def link(self, **fields: Any) -> dict[str, Any]:
        response = self.post("/payment-links", fields, self.issue("write"))
        assert response.status_code == 201, response.text
        return response.json

    def sql(self, statement: str) -> Any:
        with self.service.db.borrow_connection():
            return self.service.db.connection.execute_sql(statement)

    def __enter__(self) -> "Shop":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Nobody is connected any more, and what was to be noted is."""
        self.service.close()
        self.service.db.close()


def open_shop(
    folder: Path, ticker_url: str, clock: Clock, empty: bool = False, **environ: str
) -> Shop:
    """A service on a new database unless `environ` names one; it overrides the settings.

    An `empty` one has no merchant.
    """
    if "BLOCKTILL_DATABASE_URL" not in environ:
        environ["BLOCKTILL_DATABASE_URL"] = new_database(folder)
    elif environ["BLOCKTILL_DATABASE_URL"].startswith("sqlite"):
        versions.migrate(
            environ["BLOCKTILL_DATABASE_URL"],
            environ.get("BLOCKTILL_NETWORK", "regtest"),
        )
    environ = {
        "BLOCKTILL_NETWORK": "regtest",
        "BLOCKTILL_PRICE_SOURCES": f"{ticker_url}#/usd",
        "BLOCKTILL_CURRENCY_SOURCES": f"{ticker_url}#/{{currency}}",
        "BLOCKTILL_EXPLORERS": "http://127.0.0.1:9",
    } | environ
    app = create_app(settings.read(environ), clock)
    shop = Shop(app, app.extensions["blocktill"], clock, environ)
    if not empty:
        shop.merchant_id = shop.add_merchant("shop")
        shop.write_key, shop.read_key = shop.issue("write"), shop.issue("read")
    return shop


def pay(
    shop: Shop,
    invoice: dict[str, Any],
    amount_sats: int | None = None,
    mined_at: datetime | None = None,
    confirmed: bool = True,
    **prices: str,
) -> str:
    """The check sees one output to the invoice's address, in full unless said otherwise.

    `prices`: of a bitcoin then, by currency. A deadline that has passed ends the invoice.
    Mined at `mined_at`, or now, in the best block, or in the next if that is older than the
    invoice. Returns the transaction's id.
    """
    db = shop.service.db
    now = shop.clock()
    txid = sha256_of(random_base62(32))
    above_height = db.get(invoices.WHOLE, id=invoice["id"]).above_height
    oldest_height = 0 if above_height is None else above_height + 1
    height = max(100, oldest_height, blocks.tip_height(db) or 0)
    block = Block(height, "0b" * 32, mined_at or now) if confirmed else None
    amount_sats = invoice["amount_sats"] if amount_sats is None else amount_sats
    seen = SeenOutput(txid, 0, amount_sats, block, position=1 if block else None)
    known = {
        code: Decimal(price) for code, price in (prices or {"USD": "60000.00"}).items()
    }
    scan = Scan(now, height, ends_at=now, prices=known)
    came = (
        {"confirmed": [seen], "proofs": {txid: "{}"}} if block else {"waiting": [seen]}
    )
    apply(db, shop.service.settings, {invoice["id"]: replace(scan, **came)}, now)
    db.run(mempool_watch.LOOKED, id=invoice["id"], at=to_ms(now))
    return txid


def vanish(shop: Shop, invoice: dict[str, Any]) -> None:
    """The mempool shows no more what waited for the invoice."""
    scan = Scan(shop.clock(), 100, waiting=[], absent_is_gone=True)
    apply(shop.service.db, shop.service.settings, {invoice["id"]: scan}, shop.clock())


def finish(shop: Shop, invoice: dict[str, Any], status: str) -> None:
    """Ends an open invoice without a payment: expired, canceled."""
    row = shop.service.db.get(invoices.WHOLE, id=invoice["id"])
    history.finish(
        shop.service.db, [history.End(row, InvoiceStatus(status), {})], shop.clock()
    )


def dump(shop: Shop) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, without what each look and each request may note."""
    noted = {"checked_ms", "asked_ms", "asked_since", "history_ms", "last_used_ms"}
    facts = {
        "checked_ms",
        "read_ms",
        "ran_ms",
        "tip_since",
        "run_since",
        "time_believed",
    }
    with raw(shop.environ["BLOCKTILL_DATABASE_URL"]) as connection:
        found = tables(connection)
    return {
        table: sorted(
            (
                tuple(value for column, value in row.items() if column not in noted)
                for row in rows
                if row.get("name") not in facts
            ),
            key=repr,
        )
        for table, rows in found.items()
        if not table.startswith(("explorer", "tally", "key_requests"))
    }


def is_summed(shop: Shop, merchant_id: str = "") -> bool:
    """True if the kept balance of the shop's own merchant is the sum of its outputs."""
    db = shop.service.db
    of: dict[str, Any] = {"merchant_id": merchant_id or shop.merchant_id}
    stored = db.get(balances.OF_MERCHANT, **of)
    summed = db.get(balances.RECOMPUTED, **of)
    return bool(stored == summed)


def at_once(many: int, call: Callable[[int], Any]) -> list[Any]:
    """The answers of `call` to each of 0 to `many` - 1, from threads that begin together."""
    barrier = threading.Barrier(many)

    def begin(number: int) -> Any:
        barrier.wait(60)
        return call(number)

    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(begin, range(many)))


LONGEST_POLL_S = 0.05


def until(
    condition: Callable[[], Any],
    what: str,
    timeout_s: float = 60,
    every_s: float = 0.01,
) -> Any:
    """Polls until the condition is true, and returns what it answered.

    A machine that stands still for a while has not waited: no poll counts for more than a second.
    Who waits for long polls less often, since a poll may be a whole request.
    """
    left_s = timeout_s
    longest_s = max(every_s, LONGEST_POLL_S)
    before_s = time.monotonic()
    while not (answer := condition()):
        now_s = time.monotonic()
        left_s -= min(now_s - before_s, 1)
        before_s = now_s
        assert left_s > 0, f"waited {timeout_s} s for {what}"
        time.sleep(every_s)
        every_s = min(1.25 * every_s, longest_s)
    return answer


def answers(url: str) -> bool:
    """True if a page is there already."""
    try:
        return requests.get(url, timeout=60).ok
    except (requests.ConnectionError, requests.Timeout):
        return False


def clean_environ(**environ: str) -> dict[str, str]:
    """This process's environment without settings of the service, then `environ`."""
    ours = ("BLOCKTILL_", "GUNICORN_")
    return {n: v for n, v in os.environ.items() if not n.startswith(ours)} | environ


# Tests run beside each other: the service takes any port, and shows its metrics to nobody.
NO_PORTS = {"BLOCKTILL_BIND": "127.0.0.1:0", "BLOCKTILL_METRICS_BIND": ""}


def among_strangers(folder: Path) -> Path:
    """The folder, with another program's modules in it: a shop's `app.py` is not the service."""
    for name in ("app", "wsgi", "schemas", "storage", "btcpay", "gunicorn.conf"):
        (folder / f"{name}.py").write_text("raise SystemExit('of another program')\n")
    return folder


class Live:
    """`blocktill serve` on a free port: processes of their own, on the database of a shop.

    They are forked from one that has loaded the program, which `blocktill serve` itself only
    executes.
    """

    def __init__(
        self,
        shop: Shop,
        folder: Path,
        before: Sequence[str] = (),
        by_command: bool = False,
        words: Sequence[str] = ("serve",),
        **environ: str,
    ) -> None:
        """`before` are the words of a command that starts the server with fewer rights.

        That, and `by_command`, have a new interpreter run `blocktill serve` itself.
        """
        self._log = folder / "serve.log"
        environ = clean_environ(**(shop.environ | NO_PORTS | environ))
        if before or by_command or tuple(words) != ("serve",):
            among_strangers(folder)
        with self._log.open("wb") as log, open(os.devnull, "wb") as nowhere:
            self._process: subprocess.Popen[bytes] | Process
            if before or by_command:
                self._process = subprocess.Popen(
                    [*before, sys.executable, "-P", "-m", "btcpay", *words],
                    env=environ,
                    cwd=folder,
                    stdout=nowhere,
                    stderr=log,
                    start_new_session=True,
                )
            else:
                self._process = forge().launch(
                    environ, words, folder, nowhere.fileno(), log.fileno()
                )
        try:
            self.port = int(until(self._port, "the port in the log")[1])
            self.url = f"http://127.0.0.1:{self.port}"
            until(
                lambda: answers(f"{self.url}/api/v1/openapi.json"), "the first answer"
            )
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def log(self) -> str:
        return self._log.read_text()

    def ask(
        self, method: str, path: str, key: str = "", **kwargs: Any
    ) -> requests.Response:
        """A request below /api/v1, as `requests` sends it."""
        headers = kwargs.pop("headers", {}) | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        url = f"{self.url}/api/v1{path}"
        return requests.request(method, url, headers=headers, timeout=60, **kwargs)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self, timeout_s: float = 60) -> int:
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """Ends master and worker at once, as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _port(self) -> re.Match[str] | None:
        assert self._process.poll() is None, self.log()
        return re.search(r"Listening at: http://127\.0\.0\.1:([0-9]+)", self.log())

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()
        print(self.log())  # pytest shows it when the test has failed
