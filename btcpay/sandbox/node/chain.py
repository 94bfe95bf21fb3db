"""The chain: takes transactions in, mines, reorganises, and writes each step to the journal."""

import contextlib
import json
import sqlite3
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from btcpay.bitcoin.tx import Tx, parse_tx
from btcpay.sandbox.errors import BadRequest, JournalError
from btcpay.sandbox.node.block import (
    GENESIS,
    Block,
    build_block,
    build_coinbase,
    parse_block,
)
from btcpay.sandbox.node.ledger import ChainTx, Ledger, Mempool

MAX_BLOCKS_AT_ONCE = 1000
MAX_REORGANISATION_BLOCKS = 100  # a deeper one would take mature coinbases away


class Journal:
    """The SQLite file of everything that happened to the chain, locked until it is closed.

    `past` are the events so far: `{"tx": hex, "at": unix}` for a transaction that came, and
    `{"blocks": [hex]}` for blocks on any block of the best branch. Raises JournalError if another
    sandbox has the file, or if it is damaged.
    """

    def __init__(self, path: Path):
        path.touch(mode=stat.S_IRUSR | stat.S_IWUSR)
        self._db = sqlite3.connect(
            path, 0, isolation_level=None, check_same_thread=False
        )
        try:
            # An event survives a killed process, not a loss of power.
            self._db.executescript(
                "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                " PRAGMA synchronous = OFF; CREATE TABLE IF NOT EXISTS event (json TEXT)"
            )
            rows = self._db.execute("SELECT json FROM event ORDER BY rowid")
            self.past: list[dict[str, Any]] = [json.loads(text) for (text,) in rows]
        except sqlite3.DatabaseError as error:
            self.close()
            if error.sqlite_errorname == "SQLITE_BUSY":
                raise JournalError(f"another sandbox is running on {path}") from None
            message = f"{path}: {error}; remove it to begin a new chain"
            raise JournalError(message) from None

    def append(self, event: dict[str, Any]) -> None:
        self._db.execute("INSERT INTO event VALUES (?)", [json.dumps(event)])

    def close(self) -> None:
        self._db.close()


class Chain:
    """The best branch and its mempool. Hold `lock` to read more than one thing at a time."""

    def __init__(self, journal: Journal, reward_script: bytes):
        self.lock = threading.RLock()
        self.ledger = Ledger()
        self.mempool = Mempool()
        self.journal = journal
        self._reward_script = reward_script
        self.ledger.connect(GENESIS)
        for event in journal.past:
            self._replay(event)

    def _replay(self, event: dict[str, Any]) -> None:
        if "tx" in event:
            raw = bytes.fromhex(event["tx"])
            entry = self.mempool.judge(self.ledger, parse_tx(raw))
            self.mempool.add(entry)
        else:
            blocks = []
            for text in event["blocks"]:
                raw = bytes.fromhex(text)
                blocks.append(parse_block(raw))
            self._connect(blocks)

    def accept(self, raw: bytes, now: int) -> str:
        """The txid; one that waits already is accepted again. Raises DecodeError or BadRequest."""
        tx = parse_tx(raw)
        with self.lock:
            if tx.txid not in self.mempool.entries:
                entry = self.mempool.judge(self.ledger, tx)
                self.journal.append({"tx": tx.raw.hex(), "at": now})
                self.mempool.add(entry)
        return tx.txid

    def mine(self, count: int, now: int) -> list[str]:
        """Mines blocks, the first with all that waits; their hashes. Raises BadRequest."""
        if not 1 <= count <= MAX_BLOCKS_AT_ONCE:
            raise BadRequest(f"Blocks: give 1 to {MAX_BLOCKS_AT_ONCE}, not {count}")
        with self.lock:
            for _ in range(count):
                block = self._next_block(self.ledger, self.mempool, now)
                self._store([block])
            return self.ledger.hashes[-count:]

    def reorganise(
        self, depth: int, now: int, instead: Sequence[bytes] = ()
    ) -> list[str]:
        """Replaces the last `depth` blocks by one more; the new hashes.

        Their transactions wait again, unless the coins went to `instead`, which the first new
        block confirms. Raises BadRequest, and changes nothing, for a wrong `depth` or `instead`.
        """
        with self.lock:
            deepest = min(MAX_REORGANISATION_BLOCKS, self.ledger.height)
            if not 1 <= depth <= deepest:
                raise BadRequest(f"Depth: give 1 to {deepest}, not {depth}")
            fork_height = self.ledger.height - depth
            ledger = self.ledger.branch(fork_height)
            mempool = Mempool()
            for raw in instead:
                entry = mempool.judge(ledger, parse_tx(raw))
                mempool.add(entry)
            blocks = list[Block]()
            for _ in range(depth + 1):
                block = self._next_block(ledger, mempool, now)
                ledger.connect(block)
                mempool.remove(tx.txid for tx in block.txs[1:])
                blocks.append(block)
            self._store(blocks)
            return [block.hash for block in blocks]

    def find(self, txid: str) -> ChainTx:
        """A transaction in the mempool or on the best branch; KeyError if it is in neither."""
        return self.mempool.entries.get(txid) or self.ledger.confirmed[txid]

    def confirmed_of(self, script: bytes) -> list[ChainTx]:
        """The confirmed transactions that spend from the script or pay to it, newest first."""
        confirmed = reversed(self.ledger.confirmed.values())
        return [entry for entry in confirmed if script in entry.scripts]

    def waiting_of(self, script: bytes) -> list[ChainTx]:
        """The waiting transactions that spend from the script or pay to it, newest first."""
        waiting = reversed(self.mempool.entries.values())
        return [entry for entry in waiting if script in entry.scripts]

    def _next_block(self, ledger: Ledger, mempool: Mempool, now: int) -> Block:
        """The block that would follow the ledger's tip, later than the median time past."""
        time = max(now, ledger.median_time_past + 1)
        txs = []
        fees_sats = 0
        for entry in mempool.entries.values():
            txs.append(entry.tx)
            fees_sats += entry.fee_sats
        coinbase = build_coinbase(
            ledger.height + 1, fees_sats, self._reward_script, txs
        )
        return build_block(ledger.tip.hash, time, coinbase, txs)

    def _store(self, blocks: Sequence[Block]) -> None:
        self.journal.append({"blocks": [block.raw.hex() for block in blocks]})
        self._connect(blocks)

    def _connect(self, blocks: Sequence[Block]) -> None:
        """Puts blocks on the one that they follow; transactions of those above it wait again."""
        fork_height = self.ledger.heights[blocks[0].previous]
        returning: list[Tx] = []
        lost = self.ledger.hashes[fork_height + 1 :]
        for block_hash in lost:
            returning += self.ledger.blocks[block_hash].txs[1:]
        returning += [entry.tx for entry in self.mempool.entries.values()]
        if lost:
            self.ledger = self.ledger.branch(fork_height)
        for block in blocks:
            self.ledger.connect(block)
        self.mempool = Mempool()
        for tx in returning:
            # One that is in the blocks, or whose coins are spent, is dropped.
            with contextlib.suppress(BadRequest):
                entry = self.mempool.judge(self.ledger, tx)
                self.mempool.add(entry)
