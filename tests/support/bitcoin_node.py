"""A full node on regtest, bcoin, as a process of the tests: its blocks, its mempool, a wallet.

Unlike the sandbox it shares no line with the program. Where bcoin does otherwise than Bitcoin Core,
node/launch.js or the method concerned says what is done about it.
"""

import contextlib
import fcntl
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
import urllib3

from btcpay.bitcoin.tx import NULL_TXID, Outpoint, Tx, TxOut, parse_tx
from btcpay.sandbox.node.block import Block, build_block, build_coinbase, parse_block
from btcpay.sandbox.node.script import address_of, script_of
from tests.support.paths import TESTS
from tests.support.spending import Coin, bit_key, spend_by_bit

FOLDER = TESTS / "node"
NPM = ("timeout", "180", "npm")
RPC_TIMEOUT_S = 30
DAY_S = 86_400
COINS = 100  # that many payments need not wait for one another
SPLIT_FEE_SATS = 100_000
SATS_PER_VB = 2
MOST_FEE_SATS = 20_000  # of a payment
NOBODY = address_of(b"\x00\x14" + bytes(20))  # earns what is mined for no one


class NodeError(Exception):
    """The node answered a call with an error."""


class ChangeRefused(Exception):
    """The mempool or the chain did not take it, in the node's words."""


@cache
def why_not_installed(folder: Path = FOLDER) -> str:
    """Installs a folder's npm packages, exactly as locked; empty when they are there."""
    if not (shutil.which("node") and shutil.which("npm")):
        return "needs node and npm (Debian: nodejs, npm)"
    lock = folder / "package-lock.json"
    stamp = folder / "node_modules" / ".installed"
    with lock.open() as held:
        # of tests that start at once the first one installs
        fcntl.flock(held, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
            return ""
        install = [
            *NPM,
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--fetch-retries=1",
        ]
        done = subprocess.run(install, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            return f"{' '.join(install)}: {done.returncode} {done.stderr.strip()[:500]}"
        shutil.copyfile(lock, stamp)
    return ""


class Wallet:
    """A key of `bit`, with coins by turns P2PKH and P2SH-P2WPKH; none is ever a coinbase."""

    def __init__(self, node: "BitcoinNode") -> None:
        self._node = node
        self._key = bit_key()
        self.addresses = (self._key.address, self._key.segwit_address)
        self.scripts = tuple(map(script_of, self.addresses))

    def coins(self, coinbases: bool = False) -> list[Coin]:
        """The spendable coins: confirmed ones by rising value, then waiting ones."""
        coins = [
            coin
            for script in self.scripts
            for coin in self._node.coins(script, coinbases)
        ]
        return sorted(
            coins, key=lambda c: (c.height < 0, c.output.value_sats, c.outpoint)
        )

    def build(
        self, parts: Sequence[tuple[str, int]], coins: Sequence[Coin] = (), **fee: Any
    ) -> bytes:
        """The signed transaction, raw: (address, satoshis) in this order, then change.

        Without `coins` the first one that suffices is spent.
        """
        wanted_sats = sum(sats for _, sats in parts) + MOST_FEE_SATS
        coins = coins or [
            next(c for c in self.coins() if c.output.value_sats >= wanted_sats)
        ]
        return spend_by_bit([self._key], coins, parts, **fee or {"fee": SATS_PER_VB})


class BitcoinNode:
    """A node with the genesis block and nothing else, on a port of its own; a context manager.

    `lock` keeps one answer of an explorer over it from showing two states. Without npm or its
    registry the test is skipped, with the reason.
    """

    def __init__(self) -> None:
        if reason := why_not_installed():
            pytest.skip(reason)
        self.lock = threading.RLock()
        self._offset_s = 0
        self._chain: list[Block] = []
        self._heights: dict[str, int] = {}  # by hash, of the blocks of _chain
        self._process = subprocess.Popen(
            ["node", "launch.js"],
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        ready = self._process.stdout.readline()
        if not ready:
            self.stop()
            raise NodeError(f"the node ended with {self._process.returncode}")
        places = json.loads(ready)
        self._http = urllib3.connection_from_url(places["url"], timeout=RPC_TIMEOUT_S)
        self.place = places["peer"]

    @cached_property
    def wallet(self) -> Wallet:
        return Wallet(self)

    def __enter__(self) -> "BitcoinNode":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the process; harmless when it has ended."""
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def rpc(self, method: str, *params: Any) -> Any:
        """One JSON-RPC call. Raises NodeError."""
        call = {"id": 1, "method": method, "params": params}
        with self.lock:
            answer = self._http.request("POST", "/", json=call, retries=False).json()
        if answer.get("error"):
            raise NodeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    @property
    def now(self) -> int:
        """The node's clock, in unix seconds: the real one until `set_time`."""
        return int(time.time()) + self._offset_s

    def set_time(self, at: float) -> None:
        """Moves the node's clock to `at`, unix seconds, from where it goes on."""
        self._offset_s = int(at) - int(time.time())
        self.rpc("setmocktime", int(at))

    def fund(self) -> "BitcoinNode":
        """Mines 102 blocks, a day ago, that leave the wallet 100 coins of half a bitcoin."""
        self.set_time(self.now - DAY_S)
        self.mine(1, self.wallet.addresses[0])
        self.mine(100)
        reward = self.wallet.coins(coinbases=True)
        each_sats = (reward[0].output.value_sats - SPLIT_FEE_SATS) // COINS
        parts = [(self.wallet.addresses[n % 2], each_sats) for n in range(COINS)]
        self.send(
            self.wallet.build(parts, reward, fee=SPLIT_FEE_SATS, absolute_fee=True)
        )
        self.mine()
        self.set_time(self.now + DAY_S)
        return self

    def send(self, raw: bytes) -> str:
        """Puts a transaction into the mempool; its txid. Raises ChangeRefused."""
        answer = self.rpc("trytransaction", raw.hex())
        if answer["reason"]:
            raise ChangeRefused(answer["reason"])
        return answer["txid"]

    def pay(self, address: str, sats: int) -> str:
        return self.pay_many([(address, sats)])

    def pay_many(self, parts: Sequence[tuple[str, int]]) -> str:
        """One transaction with one output for each (address, sats), in this order; the txid."""
        with self.lock:
            return self.send(self.wallet.build(parts))

    def spent_by(self, txid: str) -> list[Coin]:
        spent = [i.outpoint for i in self.transaction(txid).inputs]
        return [Coin(o, self.transaction(o.txid).outputs[o.vout], 0) for o in spent]

    def drop(self, txid: str) -> None:
        """Forgets a waiting transaction and what spends it, as a full mempool does.

        The last first: bcoin stumbles over what descends from another in two ways.
        """
        for each in self.mempool():
            with contextlib.suppress(NodeError):  # it went with another
                if any(
                    spent.outpoint.txid == txid
                    for spent in self.transaction(each).inputs
                ):
                    self.drop(each)
        if not self.rpc("droptransaction", txid):
            raise NodeError(f"{txid} is not in the mempool")

    def mempool(self) -> list[str]:
        return self.rpc("getrawmempool")

    def transaction(self, txid: str) -> Tx:
        """A transaction of the best branch or the mempool. Raises NodeError."""
        return parse_tx(bytes.fromhex(self.rpc("getrawtransaction", txid)))

    def history(self, script: bytes) -> list[tuple[Tx, int]]:
        """A script's transactions and their heights (-1: waiting), confirmed first, oldest first.

        bcoin's index knows hashes, not scripts: P2PKH and P2WPKH of one key are found together.
        """
        found = self.rpc("gethistory", script.hex())
        return [
            (parse_tx(bytes.fromhex(each["hex"])), each["height"]) for each in found
        ]

    def coins(self, script: bytes, coinbases: bool = False) -> list[Coin]:
        """The unspent outputs to a script that are coinbases, or those that are not."""
        return [
            Coin(Outpoint(c["txid"], c["vout"]), TxOut(c["value"], script), c["height"])
            for c in self.rpc("getcoins", script.hex())
            if c["coinbase"] == coinbases
        ]

    def tip(self) -> tuple[int, str]:
        """The height and the hash of the best chain's last block."""
        chain = self.chain()
        return len(chain) - 1, chain[-1].hash

    def chain(self) -> list[Block]:
        """The best chain by height, from the genesis block on; only new blocks are fetched."""
        with self.lock:
            newer: list[Block] = []
            block_hash = self.rpc("getbestblockhash")
            while block_hash not in self._heights and block_hash != NULL_TXID:
                newer.append(self.block(block_hash))
                block_hash = newer[-1].previous
            common = self._heights.get(block_hash, -1) + 1
            for gone in self._chain[common:]:
                del self._heights[gone.hash]
            self._chain[common:] = reversed(newer)
            for height, block in enumerate(self._chain[common:], common):
                self._heights[block.hash] = height
            return list(self._chain)

    def block(self, block_hash: str) -> Block:
        """A block of any branch, parsed. Raises NodeError."""
        return parse_block(bytes.fromhex(self.rpc("getblock", block_hash, False)))

    def mine(self, n: int = 1, to: str | None = None) -> list[str]:
        """Mines `n` blocks, the first with what waits; their hashes."""
        return self.rpc("generatetoaddress", n, to or NOBODY)

    def mine_conflict(self, *raws: bytes) -> str:
        """A block with these transactions alone; what conflicts leaves the mempool. Its hash."""
        with self.lock:
            return self._mine_by_hand(self.rpc("getbestblockhash"), raws)

    def reorganise(self, depth: int, instead: Sequence[bytes] = ()) -> list[str]:
        """Replaces the last `depth` blocks by one more without their transactions; the new hashes.

        1. `instead`, raw transactions, are confirmed in the first new block.
        2. What was confirmed waits again, as with Bitcoin Core, where it still can: bcoin keeps it
           only while its mempool is not empty, and then counts twice what spends it there. So the
           mempool is emptied before and filled again.
        """
        with self.lock:
            fork, *gone = self.chain()[-depth - 1 :]
            lost = [tx for block in gone for tx in block.txs[1:]]
            waiting = self._empty_mempool()
            try:
                branch = [self._mine_by_hand(fork.hash, instead)]
                while len(branch) <= depth:
                    branch.append(self._mine_by_hand(branch[-1], ()))
                assert self.rpc("getbestblockhash") == branch[-1]
                waiting = [*lost, *waiting]
            finally:
                for tx in waiting:
                    self.rpc("trytransaction", tx.raw.hex())
            return branch

    def submit(self, block: Block) -> None:
        """Raises ChangeRefused unless the node takes the block, on whichever branch."""
        reason = self.rpc("submitblock", block.raw.hex())
        if reason:
            raise ChangeRefused(reason)

    def _mine_by_hand(self, previous: str, raws: Iterable[bytes]) -> str:
        """A block on `previous`, which leaves its fees unclaimed."""
        parent = self.rpc("getblockheader", previous)
        txs = [parse_tx(raw) for raw in raws]
        coinbase = build_coinbase(parent["height"] + 1, 0, script_of(NOBODY), txs)
        block = build_block(
            previous, max(self.now, parent["mediantime"] + 1), coinbase, txs
        )
        self.submit(block)
        return block.hash

    def _empty_mempool(self) -> list[Tx]:
        """The transactions that waited, each after those that it spends."""
        waiting = {txid: self.transaction(txid) for txid in self.mempool()}
        ordered: dict[str, Tx] = {}

        def put(tx: Tx) -> None:
            for spent in tx.inputs:
                if spent.outpoint.txid in waiting.keys() - ordered.keys():
                    put(waiting[spent.outpoint.txid])
            ordered[tx.txid] = tx

        for tx in waiting.values():
            put(tx)
        for txid in reversed(ordered):
            self.drop(txid)
        return list(ordered.values())
