"""The sandbox's chain: accepts transactions, mines and reorganises.

Each change is written to a journal, from which the chain is restored at the next start.
"""

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
MAX_REORGANISATION_BLOCKS = 100  # a deeper one would remove mature coinbases


class Journal:
    """The SQLite file with all changes of the chain. It is locked until it is closed.

    `past` are the changes that the file had when it was opened. There are two kinds:

    - `{"tx": hex, "at": unix seconds}`: a transaction was accepted.
    - `{"blocks": [hex]}`: these blocks were added on top of a block of the best chain.

    The constructor raises JournalError if another sandbox uses the file, or if the file
    is damaged.
    """

    def __init__(self, path: Path):
        path.touch(mode=stat.S_IRUSR | stat.S_IWUSR)
        self._db = sqlite3.connect(
            path,
            timeout=0,  # a locked file is an error at once
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # A change survives a killed process, but not a loss of power.
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
    """The best chain and its mempool. The rewards of mined blocks go to `reward_script`.

    Hold `lock` to read several values of the same state.
    """

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
            entry = self.mempool.validate(self.ledger, parse_tx(raw))
            self.mempool.add(entry)
        else:
            blocks = []
            for text in event["blocks"]:
                raw = bytes.fromhex(text)
                blocks.append(parse_block(raw))
            self._connect(blocks)

    def accept(self, raw: bytes, now: int) -> str:
        """Adds a transaction to the mempool and returns its txid.

        Does nothing if the mempool has the transaction already. `now` is in unix
        seconds. Raises DecodeError if the bytes are malformed, BadRequest if an input
        cannot be spent.
        """
        tx = parse_tx(raw)
        with self.lock:
            if tx.txid not in self.mempool.entries:
                entry = self.mempool.validate(self.ledger, tx)
                self.journal.append({"tx": tx.raw.hex(), "at": now})
                self.mempool.add(entry)
        return tx.txid

    def mine(self, count: int, now: int) -> list[str]:
        """Mines `count` blocks and returns their hashes.

        The first block contains all transactions of the mempool. `now` is in unix
        seconds. Raises BadRequest if `count` is not from 1 to MAX_BLOCKS_AT_ONCE.
        """
        if not 1 <= count <= MAX_BLOCKS_AT_ONCE:
            raise BadRequest(f"Blocks: give 1 to {MAX_BLOCKS_AT_ONCE}, not {count}")
        with self.lock:
            for _ in range(count):
                block = self._next_block(self.ledger, self.mempool, now)
                self._store([block])
            return self.ledger.hashes[-count:]

    def reorganise(
        self,
        depth: int,
        now: int,
        instead: Sequence[bytes] = (),
    ) -> list[str]:
        """Replaces the last `depth` blocks by `depth` + 1 new ones, and returns the new hashes.

        The first new block confirms the raw transactions `instead`. The transactions of
        the replaced blocks return to the mempool, except those whose coins `instead`
        has spent. If `depth` or a transaction in `instead` is invalid, raises
        BadRequest and changes nothing.
        """
        with self.lock:
            deepest = min(MAX_REORGANISATION_BLOCKS, self.ledger.height)
            if not 1 <= depth <= deepest:
                raise BadRequest(f"Depth: give 1 to {deepest}, not {depth}")
            fork_height = self.ledger.height - depth
            ledger = self.ledger.branch(fork_height)
            mempool = Mempool()
            for raw in instead:
                entry = mempool.validate(ledger, parse_tx(raw))
                mempool.add(entry)
            blocks = list[Block]()
            for _ in range(depth + 1):
                block = self._next_block(ledger, mempool, now)
                ledger.connect(block)
                mempool.remove(tx.txid for tx in block.txs[1:])  # without the coinbase
                blocks.append(block)
            # The ledger above was only for building: `_store` connects the blocks to ours.
            self._store(blocks)
            return [block.hash for block in blocks]

    def find(self, txid: str) -> ChainTx:
        """Returns the transaction with this txid in the mempool or in the best chain.

        Raises KeyError if neither contains it.
        """
        return self.mempool.entries.get(txid) or self.ledger.confirmed[txid]

    def confirmed_of(self, script: bytes) -> list[ChainTx]:
        """Returns the confirmed transactions that spend from or pay to a script, newest first."""
        confirmed = reversed(self.ledger.confirmed.values())
        return [entry for entry in confirmed if script in entry.scripts]

    def waiting_of(self, script: bytes) -> list[ChainTx]:
        """Returns the mempool's transactions that spend from or pay to a script, newest first."""
        waiting = reversed(self.mempool.entries.values())
        return [entry for entry in waiting if script in entry.scripts]

    def _next_block(self, ledger: Ledger, mempool: Mempool, now: int) -> Block:
        """Returns a block on the ledger's tip, whose time is later than the median time past."""
        time = max(now, ledger.median_time_past + 1)
        txs = []
        fees_sats = 0
        for entry in mempool.entries.values():
            txs.append(entry.tx)
            fees_sats += entry.fee_sats
        coinbase = build_coinbase(
            ledger.height + 1,
            fees_sats,
            self._reward_script,
            txs,
        )
        return build_block(ledger.tip.hash, time, coinbase, txs)

    def _store(self, blocks: Sequence[Block]) -> None:
        self.journal.append({"blocks": [block.raw.hex() for block in blocks]})
        self._connect(blocks)

    def _connect(self, blocks: Sequence[Block]) -> None:
        """Adds blocks, the first of which follows a block of the best chain.

        If they replace blocks, the transactions of the replaced blocks return to the
        mempool.
        """
        fork_height = self.ledger.heights[blocks[0].previous]
        lost_hashes = self.ledger.hashes[fork_height + 1 :]
        # Parents before children: those of the replaced blocks come first.
        returning: list[Tx] = []
        for block_hash in lost_hashes:
            block = self.ledger.blocks[block_hash]
            returning += block.txs[1:]  # without the coinbase
        returning += [entry.tx for entry in self.mempool.entries.values()]
        if lost_hashes:
            self.ledger = self.ledger.branch(fork_height)
        for block in blocks:
            self.ledger.connect(block)
        self.mempool = Mempool()
        for tx in returning:
            # A transaction that the blocks have, or whose coins are spent, is dropped.
            with contextlib.suppress(BadRequest):
                entry = self.mempool.validate(self.ledger, tx)
                self.mempool.add(entry)
