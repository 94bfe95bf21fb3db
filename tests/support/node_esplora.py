"""Esplora over a full node: what a public explorer would say of its chain, and ways to misbehave.

Source: Blockstream/esplora API.md. Use `NodeEsplora` as a context manager; `root` is its URL.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bitcoin_node import BitcoinNode, NodeError

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.script import address_of, kind, script_of

Json = Any
Answer = Json | str | bytes
CHAIN_TXS_PER_PAGE = 25
MAX_MEMPOOL_TXS = 50
BLOCKS_PER_PAGE = 10


class NotThere(Exception):
    """Answered with 404 and this text."""


@dataclass
class Fault:
    """One way to misbehave; of what is set, each takes effect, in the order of the fields.

    It meets every call, unless `path` or `nth` say which.
    """

    path: str = ""
    """Only calls whose path this regular expression is found in."""
    nth: int | None = None
    """Only the n-th of these calls, counted from 1 since the fault was set."""
    delay_s: float = 0
    """Waits so long before the answer."""
    drop: bool = False
    """Closes the connection without a word."""
    cut: bool = False
    """Promises the whole answer, sends half of it and closes."""
    status: int | None = None
    """Answers this status, with a sentence for a body."""
    body: bytes | None = None
    """Answers 200 with these bytes: garbage, or `b"[]"` for an empty list."""
    stale_tip: int = 0
    """Answers the tip and the newest blocks as of so many blocks ago; the rest stays true."""
    lie: Callable[[str, Answer], Answer] | None = None
    """Gets path and true answer (JSON value, text, bytes), returns what goes out instead."""
    met: int = field(default=0, init=False)
    """How many calls matched `path` so far."""

    def meets(self, path: str) -> bool:
        """Whether it strikes this call; counts it."""
        if not re.search(self.path, path):
            return False
        self.met += 1
        return self.nth in (None, self.met)


class NodeEsplora:
    """`calls` counts by kind of path, such as "/block/:hash/raw"; `faults` holds what is wrong.

    The first fault that meets a call decides. `clear` makes it honest again and forgets the counts.
    """

    def __init__(self, node: BitcoinNode) -> None:
        self.node = node
        self.calls: Counter[str] = Counter()
        self.faults: list[Fault] = []
        self._txs: dict[str, Tx] = {}  # never change, unlike where they are
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # a client that hangs up is what is tested
        self.root = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "NodeEsplora":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def set(self, *faults: Fault) -> None:
        """These faults from now on, in place of the ones before."""
        for fault in faults:
            fault.met = 0
        self.faults = list(faults)

    def clear(self) -> None:
        self.set()
        self.calls.clear()

    def count(self, path: str) -> tuple[str, Fault]:
        """Counts a call; its kind, and what goes wrong with it."""
        kind_of_path = next((k for k, pattern, _ in ROUTES if pattern.fullmatch(path)), "unknown")
        with self._lock:
            self.calls[kind_of_path] += 1
            return kind_of_path, next((f for f in self.faults if f.meets(path)), Fault())

    def wait(self, seconds: float) -> None:
        """Sleeps, but not beyond the end of the server."""
        self._released.wait(seconds)

    def answer(self, path: str, stale_tip: int = 0) -> Answer:
        """The truth. Raises NotThere, BadRequest."""
        for _, pattern, view in ROUTES:
            if found := pattern.fullmatch(path):
                extra = {"ago": stale_tip} if view in TIPS else {}
                with self.node.lock:
                    return view(self, *found.groups(), **extra)
        raise NotThere(f'endpoint does not exist "{path}"')

    def tx(self, txid: str) -> Tx:
        """A transaction that was on the best branch or waiting when it was first asked for."""
        if txid not in self._txs:
            self._txs[txid] = self.node.transaction(txid)
        return self._txs[txid]

    def tx_json(self, tx: Tx, height: int | None) -> Json:
        self._txs[tx.txid] = tx
        spent = [None if tx.is_coinbase else self.output(i.outpoint) for i in tx.inputs]
        fee_sats = sum(o.value_sats for o in spent if o) - sum(o.value_sats for o in tx.outputs)
        return {
            "txid": tx.txid,
            "version": tx.version,
            "locktime": tx.locktime,
            "vin": [_input_json(*pair) for pair in zip(tx.inputs, spent, strict=True)],
            "vout": [_output_json(output) for output in tx.outputs],
            "size": len(tx.raw),
            "weight": tx.weight,
            "fee": 0 if tx.is_coinbase else fee_sats,
            "status": self.status_json(height),
        }

    def output(self, outpoint: Outpoint) -> TxOut:
        return self.tx(outpoint.txid).outputs[outpoint.vout]

    def status_json(self, height: int | None) -> Json:
        if height is None:
            return {"confirmed": False}
        header = self.header(self.node.rpc("getblockhash", height))
        block = {"block_height": height, "block_hash": header["hash"]}
        return {"confirmed": True} | block | {"block_time": header["time"]}

    def header(self, block_hash: str) -> Json:
        """Raises NotThere for a block that the node does not have, on no branch."""
        try:
            return self.node.rpc("getblockheader", block_hash)
        except NodeError:
            raise NotThere("Block not found") from None

    def history(self, address: str) -> tuple[list[Json], list[Json]]:
        """Waiting and confirmed transactions of an address, newest first each."""
        script = script_of(address)
        found = [pair for pair in self.node.history(script) if self._touches(pair[0], script)]
        waiting = [self.tx_json(tx, None) for tx, height in reversed(found) if height < 0]
        confirmed = [self.tx_json(tx, height) for tx, height in reversed(found) if height >= 0]
        return waiting, confirmed

    def _touches(self, tx: Tx, script: bytes) -> bool:
        spent = [] if tx.is_coinbase else [self.output(i.outpoint) for i in tx.inputs]
        return any(output.script == script for output in [*tx.outputs, *spent])


# Blocks


def _tip_height(esplora: NodeEsplora, ago: int = 0) -> str:
    return str(max(0, esplora.node.tip()[0] - ago))


def _tip_hash(esplora: NodeEsplora, ago: int = 0) -> str:
    return esplora.node.rpc("getblockhash", int(_tip_height(esplora, ago)))


def _hash_at(esplora: NodeEsplora, height: str) -> str:
    if int(height) > esplora.node.tip()[0]:
        raise NotThere("Block not found")
    return esplora.node.rpc("getblockhash", int(height))


def _newest_blocks(esplora: NodeEsplora, ago: int = 0) -> Json:
    return _blocks(esplora, _tip_height(esplora, ago))


def _blocks(esplora: NodeEsplora, start: str) -> Json:
    """Ten from this height down."""
    heights = range(int(start), max(-1, int(start) - BLOCKS_PER_PAGE), -1)
    return [_block(esplora, _hash_at(esplora, str(height))) for height in heights]


def _block(esplora: NodeEsplora, block_hash: str) -> Json:
    header = esplora.header(block_hash)
    block = esplora.node.block(block_hash)
    return {
        "id": block_hash,
        "height": header["height"],
        "version": header["version"],
        "timestamp": header["time"],
        "tx_count": len(block.txs),
        "size": len(block.raw),
        "weight": block.weight,
        "merkle_root": header["merkleroot"],
        "previousblockhash": header["previousblockhash"],
        "mediantime": header["mediantime"],
        "nonce": block.nonce,
        "bits": header["bits"],
        "difficulty": header["difficulty"],
    }


def _block_header(esplora: NodeEsplora, block_hash: str) -> str:
    esplora.header(block_hash)
    return esplora.node.rpc("getblockheader", block_hash, False)


def _block_raw(esplora: NodeEsplora, block_hash: str) -> bytes:
    esplora.header(block_hash)
    return bytes.fromhex(esplora.node.rpc("getblock", block_hash, False))


# Transactions


def _input_json(spending: Any, spent: TxOut | None) -> Json:
    witness = {"witness": [item.hex() for item in spending.witness]} if spending.witness else {}
    return {
        "txid": spending.outpoint.txid,
        "vout": spending.outpoint.vout,
        "prevout": spent and _output_json(spent),
        "scriptsig": spending.script_sig.hex(),
        "is_coinbase": spent is None,
        "sequence": spending.sequence,
    } | witness


def _output_json(output: TxOut) -> Json:
    address = address_of(output.script)
    return {
        "scriptpubkey": output.script.hex(),
        "scriptpubkey_type": kind(output.script),
        "value": output.value_sats,
    } | ({"scriptpubkey_address": address} if address else {})


# Addresses


def _address_txs(esplora: NodeEsplora, address: str) -> Json:
    waiting, confirmed = esplora.history(address)
    return waiting[:MAX_MEMPOOL_TXS] + confirmed[:CHAIN_TXS_PER_PAGE]


def _address_mempool(esplora: NodeEsplora, address: str) -> Json:
    return esplora.history(address)[0][:MAX_MEMPOOL_TXS]


PARTS = {
    ":hash": "([0-9a-f]{64})",
    ":txid": "([0-9a-f]{64})",
    ":height": "([0-9]{1,9})",
    ":vout": "([0-9]{1,9})",
    ":address": "([0-9a-zA-Z]{1,100})",
}
VIEWS: dict[str, Callable[..., Answer]] = {
    "/blocks/tip/height": _tip_height,
    "/blocks/tip/hash": _tip_hash,
    "/blocks": _newest_blocks,
    "/blocks/:height": _blocks,
    "/block-height/:height": _hash_at,
    "/block/:hash/header": _block_header,
    "/block/:hash/raw": _block_raw,
    "/address/:address/txs": _address_txs,
    "/address/:address/txs/mempool": _address_mempool,
}
TIPS = (_tip_height, _tip_hash, _newest_blocks)
ROUTES = [
    (path, re.compile(re.sub(":[a-z]+", lambda part: PARTS[part[0]], path)), view)
    for path, view in VIEWS.items()
]


def _handler(esplora: NodeEsplora) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body leave together

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            _, fault = esplora.count(path)
            if fault.delay_s:
                esplora.wait(fault.delay_s)
            if fault.drop:
                self.close_connection = True
                return
            status, body, content_type = _reply(esplora, path, fault)
            self._send(status, body, content_type, fault.cut)

        def _send(
            self, status: int, body: bytes, content_type: str = "text/plain", cut: bool = False
        ) -> None:
            self.send_response_only(status)  # without a Date: the test's clock is another
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
            self.close_connection = self.close_connection or cut

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _reply(esplora: NodeEsplora, path: str, fault: Fault) -> tuple[int, bytes, str]:
    """Status, body and content type."""
    if fault.status is not None:
        return fault.status, b"the explorer misbehaves as told", "text/plain"
    if fault.body is not None:
        return 200, fault.body, "application/json"
    try:
        answer = esplora.answer(path, fault.stale_tip)
    except NotThere as error:
        return 404, str(error).encode(), "text/plain"
    except BadRequest as error:
        return 400, str(error).encode(), "text/plain"
    if fault.lie:
        answer = fault.lie(path, answer)
    if isinstance(answer, bytes):
        return 200, answer, "application/octet-stream"
    if isinstance(answer, str):
        return 200, answer.encode(), "text/plain"
    return 200, json.dumps(answer).encode(), "application/json"
