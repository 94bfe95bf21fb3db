"""Explorers on real sockets: one that pages, lies and breaks as told, one with a real chain.

`histories` holds each address's transactions, newest first; `instead` may answer a path with one of
the replies below in place of the truth; `asked` lists the paths; `headers` are added to each
answer, which has no Date otherwise. What `tx_of` makes is invented, and in none of its blocks.
"""

import contextlib
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

from flask import Flask

from btcpay.bitcoin.tx import TxOut
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.first_header import BELOW
from btcpay.chain.follow import add_header
from btcpay.check.report import Report
from btcpay.check.run import Checker
from btcpay.http import http_client
from btcpay.prices.price import Prices
from btcpay.proofs.document import check_document
from btcpay.proofs.verify import ProvenPayment
from btcpay.sandbox.esplora import block_view
from btcpay.sandbox.node.block import (
    GENESIS_RAW,
    Block,
    build_block,
    build_coinbase,
    parse_block,
)
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.coins import choose
from btcpay.sandbox.server import create_app
from btcpay.sandbox.shop import Shop as SandboxShop
from btcpay.sandbox.state import EXTENSION, Sandbox, open_sandbox
from btcpay.settings.settings import Settings
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import events, payments
from storage.queries import invoices as pages
from tests.support.builders import Clock, Shop, TickerServer, open_shop
from tests.support.forge import Process, forge
from tests.support.paths import PROJECT
from tests.support.serving import Reply, Serving, say

Json = dict[str, Any]
ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
SCRIPT = script_of(ADDRESS)
OWN_EXPLORER = {
    "BLOCKTILL_EXPLORER_CALLS_PER_HOUR": "10000000"
}  # its quota is tested elsewhere
# empty blocks below one that is made, so that a page of headers links
BLOCKS_BELOW = 20
_serving: dict[str, Flask] = {}  # by their roots
HEADERS_KEPT = 1 + BELOW + 12  # those of the last two hours, and what is kept below
BLOCK_TIME = int(time.time())  # money from before an invoice does not pay it


def tx_of(
    number: int,
    script: bytes | str,
    sats: int = 1_000,
    height: int | None = None,
    **fields: Any,
) -> Json:
    """A transaction as Esplora shows it: one input, one output; confirmed when it has a height."""
    block = {
        "block_height": height,
        "block_hash": f"{height or 0:064x}",
        "block_time": BLOCK_TIME,
    }
    spends = fields.pop("spends", ("ff" * 32, 0))
    script = script if isinstance(script, str) else script.hex()
    return {
        "txid": f"{number:064x}",
        "vin": [{"txid": spends[0], "vout": spends[1], "is_coinbase": False}],
        "vout": [{"scriptpubkey": script, "value": sats}],
        "status": {"confirmed": False}
        if height is None
        else {"confirmed": True} | block,
    } | fields


def truncated(body: bytes) -> Reply:
    return say(
        body, 200, **{"Content-Length": str(len(body) + 1), "Connection": "close"}
    )


def dropped(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def silent(released: threading.Event) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        released.wait(30)
        handler.close_connection = True

    return reply


def slow(seconds: float, then: Reply) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        then(handler)

    return reply


def dripping(start: bytes, drop: bytes, released: threading.Event) -> Reply:
    """Sends `start` and then `drop` twenty times a second, for half a minute or until released."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(start)
            for _ in range(600):
                if released.wait(0.05):
                    return
                handler.wfile.write(drop)
                handler.wfile.flush()

    return reply


def filled(
    piece: bytes, megabytes: float, start: bytes = b"[", end: bytes = b"]"
) -> Reply:
    """A JSON value of so many megabytes, made of pieces with commas between them."""
    return say(
        start + b",".join([piece] * int(megabytes * 1e6 / (len(piece) + 1))) + end
    )


def endless_head(handler: BaseHTTPRequestHandler) -> None:
    """Six megabytes of headers before an empty list."""
    handler.close_connection = True
    with contextlib.suppress(OSError):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(95):
            handler.wfile.write(b"X-%d: %s\r\n" % (number, b"a" * 65_000))
        handler.wfile.write(b"Content-Length: 2\r\n\r\n[]")


NOT_FOUND = say("there is no such thing", 404)


def of_blocks(blocks: Mapping[int, Block], tip: int, path: str) -> Reply | None:
    """An explorer's answer about this chain's headers and blocks; None on another path."""
    match path.split("/")[1:]:
        case ["blocks", "tip", "height"]:
            return say(str(tip))
        case ["blocks", "tip", "hash"]:
            return say(blocks[tip].hash)
        case ["blocks", *start]:
            top = int(start[0]) if start else tip
            heights = [each for each in range(top, top - 10, -1) if each in blocks]
            return (
                say([block_view(blocks[h], h) for h in heights])
                if top <= tip
                else NOT_FOUND
            )
        case ["block-height", height]:
            return say(blocks[int(height)].hash) if int(height) <= tip else NOT_FOUND
        case ["block", block_hash, "header" | "raw" as what]:
            for block in blocks.values():
                if block.hash == block_hash:
                    return say(block.header.hex() if what == "header" else block.raw)
            return NOT_FOUND
    return None


class FakeEsplora(Serving):
    def __init__(self) -> None:
        super().__init__()
        self.histories: dict[str, list[Json]] = {}
        self.tip = 1000
        self.blocks: dict[int, Block] = {0: parse_block(GENESIS_RAW)}
        self.block_time = BLOCK_TIME
        self.asked: list[str] = []
        self.instead: Callable[[str], Reply | None] = lambda path: None

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        self.asked.append(request.path)
        return self.instead(request.path) or self._answer(request.path)

    def secure(self, folder: Path) -> None:
        """From now on by TLS, with the certificate in this folder."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "fullchain.pem", folder / "privkey.pem")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.root = self.root.replace("http:", "https:")

    def _answer(self, target: str) -> Reply:
        path = target.partition("?")[0]
        if asked := re.fullmatch(r"/blocks?(?:-height|/tip/hash)?(?:/([0-9]+))?", path):
            self.block_at(min(int(asked[1] or self.tip), self.tip))
        if reply := of_blocks(self.blocks, self.tip, path):
            return reply
        match path.split("/")[1:]:
            case ["address", address, "txs", *rest] if address in self.histories:
                history = self.histories[address]
                if rest == ["mempool"]:
                    history = [tx for tx in history if not tx["status"]["confirmed"]]
                return say(history[:50])
        return NOT_FOUND

    def block_at(self, height: int) -> Block:
        """An empty block at this height; it links to those below."""
        return self.blocks.get(height) or self._build(height)

    def _build(self, height: int) -> Block:
        assert height + 1 not in self.blocks, (
            f"there is a block above {height}: build from below"
        )
        if height - 1 not in self.blocks:
            highest = max(known for known in self.blocks if known < height)
            for each in range(max(highest + 1, height - BLOCKS_BELOW), height):
                self._build(each)
        below = self.blocks.get(height - 1)
        coinbase = build_coinbase(height, 0, b"\x51", [])
        block = build_block(
            below.hash if below else "00" * 32, self.block_time, coinbase, []
        )
        self.blocks[height] = block
        return block


class Liar(FakeEsplora):
    """Passes on an honest explorer's answers, some of them changed by `lies`.

    A lie is found by a regular expression for its path; it gets the JSON value or text of the
    true answer and returns what goes out instead, or a reply.
    """

    def __init__(self, honest: str) -> None:
        super().__init__()
        self.honest = honest
        self.lies: dict[str, Callable[[Any], Any]] = {}

    def ask_honest(self, path: str) -> tuple[int, Any]:
        """The honest explorer's status, and its JSON value or its body."""
        truth = _serving[self.honest].test_client().get(path)
        return truth.status_code, truth.json if truth.is_json else truth.data

    def _answer(self, target: str) -> Reply:
        truth = _serving[self.honest].test_client().get(target)
        for pattern, lie in self.lies.items():
            if re.search(pattern, target):
                text = truth.data.decode(errors="replace")  # a block is no text
                answer = lie(truth.json if truth.is_json else text)
                return answer if callable(answer) else say(answer)
        return say(truth.data, truth.status_code)

    def count(self, pattern: str) -> int:
        return sum(1 for path in self.asked if re.search(pattern, path))


class _Chain(Serving):
    """A sandbox over HTTP; its Date is the test's clock, or the present if later, as commands have.

    By connections that stay open, which the product's own server does not offer.
    """

    def __init__(self, app: Flask, clock: Clock) -> None:
        super().__init__()
        self.app = app
        self.clock = clock

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        sent: dict[str, Any] = {
            "method": request.command,
            "headers": request.headers.items(),
            "data": body,
        }
        got = self.app.test_client().open(request.path, **sent)
        date = formatdate(max(time.time(), self.clock().timestamp()), usegmt=True)
        return say(got.data, got.status_code, **(dict(got.headers) | {"Date": date}))


@contextlib.contextmanager
def serving_sandbox(
    folder: Path, clock: Clock, shop: SandboxShop | None = None
) -> Iterator[tuple[Sandbox, str]]:
    """A real regtest chain on a real socket, whose time is the test's clock; its root URL."""
    app = create_app()
    sandbox = open_sandbox(folder, lambda: int(clock().timestamp()), shop)
    app.extensions[EXTENSION] = sandbox
    with _Chain(app, clock) as served:
        _serving[served.root] = app
        yield sandbox, served.root
    del _serving[served.root]
    sandbox.close()


@dataclass
class Till:
    """A shop, the chain that it is paid on, and the check between them."""

    shop: Shop
    sandbox: Sandbox
    clock: Clock

    @property
    def environ(self) -> dict[str, str]:
        return self.shop.environ

    @property
    def settings(self) -> Settings:
        return self.shop.service.settings

    @property
    def now(self) -> int:
        return int(self.clock().timestamp())

    def pay(self, invoice: Json, sats: int | None = None) -> str:
        """Pays an invoice from the sandbox's wallet, all of it unless told otherwise; the txid."""
        amount = invoice["amount_sats"] if sats is None else sats
        return self.sandbox.wallet.pay(invoice["deposit_address"], amount, self.now)

    def pay_in_block(self, invoice: Json | None = None) -> Json:
        """Pays an invoice, a new one unless told otherwise, in a new block; the invoice."""
        invoice = invoice or self.shop.invoice()
        self.pay(invoice)
        self.mine()
        return invoice

    def pay_outputs(self, *parts: tuple[Json, int]) -> str:
        """One transaction with one output for each (invoice, sats), in this order."""
        wallet = self.sandbox.wallet
        outputs = [
            TxOut(sats, script_of(inv["deposit_address"])) for inv, sats in parts
        ]
        coins = choose(wallet.coins(), sum(sats for _, sats in parts) + 2_000)
        return self.sandbox.chain.accept(wallet.build(coins, outputs, 2_000), self.now)

    def begin(self) -> Self:
        """Keeps the newest headers, as when their blocks were read: that takes thirty questions."""
        ledger = self.sandbox.chain.ledger
        db = self.shop.service.db
        with db.write():
            for hash in ledger.hashes[-HEADERS_KEPT:]:
                add_header(
                    db, ledger.heights[hash], ledger.blocks[hash].header, is_read=True
                )
        return self

    def mine(self, blocks: int = 1) -> None:
        self.sandbox.chain.mine(blocks, self.now)

    def mine_only(self, *txids: str) -> None:
        """Mines a block with these alone; everything else goes on waiting."""
        chain = self.sandbox.chain
        others = [
            entry for txid, entry in chain.mempool.entries.items() if txid not in txids
        ]
        chain.mempool.remove(entry.tx.txid for entry in others)
        self.mine()
        for entry in others:
            chain.mempool.add(entry)

    def checker(
        self,
        db: Database | None = None,
        explorers: Explorers | None = None,
        in_flight: int = 4,
        clock: Clock | None = None,
        **changes: Any,
    ) -> Checker:
        """The parts of one `blocktill check`: its own connections, its own knowledge of the price.

        On a machine with a clock of its own, if one is named; `changes` are of the settings.
        """
        asked = explorers or self.explorers(db=db)
        return Checker(
            db or self.shop.service.db,
            replace(self.settings, **changes),
            asked,
            Prices(self.settings),
            clock or self.clock,
            lambda: f"{self.now} this start",
            explorers=asked,
            in_flight=in_flight,
        )

    def explorers(
        self, *roots: str, db: Database | None = None, kind: type[Explorers] = Explorers
    ) -> Explorers:
        """These, or those of the settings, within their quota; asked again without a pause."""
        settings = self.settings
        quota = Quota(
            db or self.shop.service.db, settings.explorer_calls_per_hour, self.clock
        )
        session = http_client.Session(4)
        return kind(
            settings.network,
            roots or settings.explorers,
            session,
            quota,
            lambda _: None,
        )

    def check(self, *roots: str, clock: Clock | None = None, **changes: Any) -> Report:
        """A whole run that asks these explorers; `changes` are of the settings."""
        checker = self.checker(explorers=self.explorers(*roots), clock=clock, **changes)
        run = checker.run()
        checker.finish(run)
        return run

    def confirm(self, invoice: Json, sats: int | None = None) -> Report:
        """Pays an invoice in a new block, and checks."""
        self.pay(invoice, sats)
        return self.mine_and_check()

    def mine_and_check(self, blocks: int = 1) -> Report:
        self.mine(blocks)
        return self.check()

    def look_for(self, *invoices: Json, clock: Clock | None = None) -> Report:
        """A run that asks the mempool for these alone, due or not: `blocktill check --invoice`."""
        return self.checker(clock=clock).run([invoice["id"] for invoice in invoices])

    def open_page(self, *invoices: Json) -> None:
        """Notes at once, as the service would, that somebody is looking at their pages."""
        for invoice in invoices:
            self.shop.service.db.run(
                pages.ASKED, id=invoice["id"], at=to_ms(self.clock())
            )

    def look(self, invoice: Json) -> Json:
        return self.shop.get(f"/invoices/{invoice['id']}").json

    def payments(self, invoice: Json | None = None) -> list[Json]:
        query = {"invoice_id": invoice["id"]} if invoice else {}
        return self.shop.get("/payments", query_string=query).json["data"]

    def balance(self) -> tuple[int, int]:
        body = self.shop.get("/balance").json
        return body["confirmed_sats"], body["total_sats"]

    def proof(self, invoice: Json) -> ProvenPayment:
        """Shown offline by the proof of the invoice's only payment."""
        rows = self.shop.service.db.rows(
            payments.PROOFS_OF_ADDRESS, invoice_id=invoice["id"]
        )
        (proven,) = (check_document(json.loads(row.document)) for row in rows)
        return proven

    def kinds(self, invoice: Json) -> list[str]:
        found = self.shop.service.db.rows(events.OF_INVOICE, invoice_id=invoice["id"])
        return [event.kind for event in found]


@contextlib.contextmanager
def open_till(
    folder: Path,
    ticker: TickerServer,
    clock: Clock,
    has_begun: bool = True,
    **environ: Any,
) -> Iterator[Till]:
    """A shop that has read the chain so far, unless it has not begun."""
    ticker.reset()
    with serving_sandbox(folder / "chain", clock) as (sandbox, root):
        environ = {"BLOCKTILL_EXPLORERS": root} | OWN_EXPLORER | environ
        with open_shop(folder, ticker.url, clock, **environ) as shop:
            till = Till(shop, sandbox, clock)
            yield till.begin() if has_begun else till


@dataclass
class LiedTo(Till):
    liar: Liar


@contextlib.contextmanager
def open_lied_to(
    folder: Path,
    ticker: TickerServer,
    clock: Clock,
    honest_too: bool = False,
    has_begun: bool = True,
    **environ: Any,
) -> Iterator[LiedTo]:
    """A shop before a liar, and behind that, if wanted, the honest explorer."""
    ticker.reset()
    with (
        serving_sandbox(folder / "chain", clock) as (sandbox, root),
        Liar(root) as liar,
    ):
        roots = f"{liar.root} {root}" if honest_too else liar.root
        environ = {"BLOCKTILL_EXPLORERS": roots} | OWN_EXPLORER | environ
        with open_shop(folder, ticker.url, clock, **environ) as shop:
            till = LiedTo(shop, sandbox, clock, liar)
            yield till.begin() if has_begun else till


class Terminal:
    """Runs `blocktill ...` with the settings of a shop."""

    def __init__(self, of: Till | Shop) -> None:
        self.environ = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(PROJECT),
        } | of.environ

    def start(self, *words: str, **environ: str) -> Process:
        return forge().start(self.environ | environ, list(words))

    def run(self, *words: str, status: int = 0, **environ: str) -> tuple[str, str]:
        """Standard output and standard error of a command that ends with `status`."""
        ended = forge().run(self.environ | environ, list(words))
        assert ended.status == status, ended.output + ended.errors
        return ended.output, ended.errors

    def json(self, *words: str, status: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", status=status)[0])
