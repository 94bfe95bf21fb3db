"""The simulation's world: a chain of payments, merchants' receivers, payers and shops."""

import contextlib
import http.client
import json
import random
import threading
import time
from bisect import bisect_right
from collections import Counter
from http.server import BaseHTTPRequestHandler

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.sandbox.node.block import (
    GENESIS_RAW,
    Block,
    build_block,
    build_coinbase,
    parse_block,
)
from tests.scale.fill import AMOUNT_SATS, invoice_id, script
from tests.support.fake_esplora import NOT_FOUND, of_blocks
from tests.support.serving import Reply, Serving, say

BELOW = 30  # empty blocks, so that headers link for some hours
ORDER = json.dumps({"amount_usd": 25, "description": "Tea"})
P2WPKH = b"\x00\x14" + b"\xab" * 20
PAYERS = 300  # with an open page each, of the invoices that no block pays


class Chain(Serving):
    """An explorer with a chain of its own; the mempool is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[int, Block] = {0: parse_block(GENESIS_RAW)}
        self.paid: list[int] = []  # the numbers of the invoices that its blocks pay
        for number in range(BELOW):
            self._add(int(time.time()) - 600 * (BELOW - number), [])

    @property
    def tip(self) -> int:
        return len(self.blocks) - 1

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        path = request.path.partition("?")[0]
        if path.startswith("/address/"):
            return say([])
        return of_blocks(self.blocks, self.tip, path) or NOT_FOUND

    def pay(self, numbers: range) -> None:
        """A block that pays these invoices in full."""
        txs = []
        for number in numbers:
            spent = TxIn(Outpoint(f"{number + 1:064x}", number), b"", 0xFFFFFFFD, ())
            txs.append(Tx(2, (spent,), (TxOut(AMOUNT_SATS, script(number)),), 0))
        self._add(int(time.time()), txs)
        self.paid += numbers

    def _add(self, time_s: int, txs: list[Tx]) -> None:
        coinbase = build_coinbase(self.tip + 1, 0, P2WPKH, txs)
        block = build_block(self.blocks[self.tip].hash, time_s, coinbase, txs)
        self.blocks[self.tip + 1] = block


class Receivers(Serving):
    """All merchants' webhooks; counts how often each event came."""

    def __init__(self) -> None:
        super().__init__()
        self.came = Counter[str]()
        self.times_s = list[float]()

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        request.rfile.read(int(request.headers["Content-Length"]))
        self.came[request.headers["webhook-id"]] += 1
        self.times_s.append(time.monotonic())
        return say(b"", 204)

    def most_in_a_minute(self) -> int:
        times_s = sorted(self.times_s)
        return max(
            (bisect_right(times_s, at + 60) - n for n, at in enumerate(times_s)),
            default=0,
        )


class Load:
    """Payers and shops: each thread asks one web process, and then the other."""

    def __init__(self, ports: list[int], invoices: int, merchants: int) -> None:
        self.ports = ports
        self.invoices = invoices
        self.merchants = merchants
        self.took: dict[str, list[float]] = {"look": [], "read": [], "order": []}
        self.refused = Counter[str]()
        self.made = list[str]()
        self.step = ""
        self.first_refused = ""
        self.steps = dict[str, Counter[str]]()
        self._over = threading.Event()
        self._keys = iter(range(10**9))
        self._threads = [
            threading.Thread(target=self._ask, args=(kind, number), daemon=True)
            for kind, count in (("look", 3), ("read", 2), ("order", 2))
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _ask(self, kind: str, number: int) -> None:
        while not self._over.wait(0.2 if kind == "order" else 0.02):
            began_s = time.monotonic()
            try:
                self._once(kind, random.choice(self.ports))
            except (OSError, http.client.HTTPException) as error:
                self._refuse(kind, type(error).__name__)
            else:
                self.took[kind].append(time.monotonic() - began_s)

    def _once(self, kind: str, port: int) -> None:
        address = f"127.0.{random.randrange(1, 250)}.{random.randrange(1, 250)}"
        line = http.client.HTTPConnection(
            "127.0.0.1", port, 30, source_address=(address, 0)
        )
        with contextlib.closing(line):
            number = self.invoices - 1 - random.randrange(PAYERS)
            owner = number if kind == "read" else next(self._keys)
            headers = {"Authorization": f"Bearer {secret(owner % self.merchants)}"}
            if kind == "look":
                line.request("GET", f"/pay/{invoice_id(number)}/status")
            elif kind == "read":
                line.request(
                    "GET", f"/api/v1/invoices/{invoice_id(number)}", None, headers
                )
            else:
                headers["Content-Type"] = "application/json"
                line.request("POST", "/api/v1/invoices", ORDER, headers)
            answer = line.getresponse()
            body = answer.read()
        if answer.status == 201:
            self.made.append(json.loads(body)["id"])
        elif answer.status != 200:
            self._refuse(kind, str(answer.status))

    def _refuse(self, kind: str, why: str) -> None:
        if self.step:  # else the processes are still starting
            self.refused[f"{kind}: {why}"] += 1
            self.first_refused = (
                self.first_refused or f"{kind}: {why}, beside {self.step}"
            )


def secret(number: int) -> str:
    return f"sk_test_w{number:038d}"
