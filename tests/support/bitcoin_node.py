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
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from paths import TESTS

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut, parse_tx
from btcpay.bitcoin.wire import compact_size, prefixed, u32
from btcpay.sandbox.node.block import Block, build_block, build_coinbase, parse_block
from btcpay.sandbox.node.script import address_of, kind, script_of
from btcpay.sandbox.payer.coins import RBF_SEQUENCE, SIGHASH_ALL, witness_preimage
from btcpay.sandbox.payer.key import Key

FOLDER = TESTS / "node"
INSTALL_TIMEOUT_S = 180
RPC_TIMEOUT_S = 30
DAY_S = 86_400
COINS = 100  # that many payments need not wait for one another
SPLIT_FEE_SATS = 100_000
SATS_PER_VB = 2
CHANGE_FLOOR_SATS = 540  # P2SH's dust limit; a smaller rest goes to the miner
NOBODY = address_of(b"\x00\x14" + bytes(20))  # earns what is mined for no one


class NodeError(Exception):
    """The node answered a call with an error."""


class Refused(Exception):
    """The mempool or the chain did not take it, in the node's words."""


class Coin(NamedTuple):
    """An unspent output; `height` is -1 while its transaction waits."""

    outpoint: Outpoint
    output: TxOut
    height: int


@cache
def why_not_installed(folder: Path = FOLDER) -> str:
    """Installs a folder's npm packages, exactly as locked; empty when they are there."""
    if not (shutil.which("node") and shutil.which("npm")):
        return "needs node and npm (Debian: nodejs, npm)"
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / ".installed"
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # of tests that start at once the first one installs
        if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
            return ""
        return _install(lock, stamp)


def _install(lock: Path, stamp: Path) -> str:
    try:
        done = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"],
            cwd=lock.parent,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"npm ci took longer than {INSTALL_TIMEOUT_S} s"
    if done.returncode:
        return f"npm ci failed: {done.stderr.strip()[:500]}"
    shutil.copyfile(lock, stamp)
    return ""


def legacy_preimage(tx: Tx, index: int, script_code: bytes) -> bytes:
    """What SIGHASH_ALL commits to in an input of a script without witness."""
    inputs = b"".join(
        i.outpoint.raw + prefixed(script_code if n == index else b"") + u32(i.sequence)
        for n, i in enumerate(tx.inputs)
    )
    counted_inputs = compact_size(len(tx.inputs)) + inputs
    counted_outputs = compact_size(len(tx.outputs)) + b"".join(o.raw for o in tx.outputs)
    return u32(tx.version) + counted_inputs + counted_outputs + u32(tx.locktime) + u32(SIGHASH_ALL)


def sign(key: Key, coins: Sequence[Coin], outputs: Iterable[TxOut]) -> Tx:
    """Spends P2WPKH, P2SH-P2WPKH and P2PKH coins of one key, each with SIGHASH_ALL."""
    inputs = tuple(TxIn(coin.outpoint, b"", RBF_SEQUENCE) for coin in coins)
    unsigned = Tx(2, inputs, tuple(outputs), 0)

    def signed(index: int, spent: TxIn, output: TxOut) -> TxIn:
        if kind(output.script) == "p2pkh":
            preimage = legacy_preimage(unsigned, index, key.script_code)
        else:
            preimage = witness_preimage(unsigned, index, key.script_code, output.value_sats)
        proof = (key.sign(preimage) + bytes([SIGHASH_ALL]), key.public_key)
        if kind(output.script) == "p2pkh":
            return spent._replace(script_sig=b"".join(map(prefixed, proof)))
        nested = prefixed(key.program_script) if kind(output.script) == "p2sh" else b""
        return spent._replace(script_sig=nested, witness=proof)

    proven = [signed(i, inputs[i], coin.output) for i, coin in enumerate(coins)]
    return Tx(2, tuple(proven), tuple(outputs), 0)


class Wallet:
    """Ordinary coins, by turns P2WPKH and P2SH-P2WPKH; none is ever a coinbase."""

    def __init__(self, node: "BitcoinNode") -> None:
        self._node, self.key = node, Key.new()
        self.scripts = (self.key.program_script, self.key.script)
        self.address = address_of(self.scripts[0])

    def coins(self, coinbases: bool = False) -> list[Coin]:
        """What could be spent now: confirmed coins by rising value, then waiting ones."""
        coins = [coin for script in self.scripts for coin in self._node.coins(script, coinbases)]
        return sorted(coins, key=lambda c: (c.height < 0, c.output.value_sats, c.outpoint))

    def build(
        self,
        outputs: Sequence[TxOut],
        coins: Sequence[Coin] | None = None,
        fee_sats: int | None = None,
    ) -> bytes:
        """The signed transaction, raw: these outputs, then change unless it is dust.

        Without `coins` the first one that suffices is spent; without `fee_sats` it is 2 per vB.
        """
        wanted_sats = sum(output.value_sats for output in outputs)
        coins = coins or [self._coin_over(wanted_sats + (fee_sats or 20_000))]
        total_sats = sum(coin.output.value_sats for coin in coins)

        def with_fee(fee_sats: int) -> Tx:
            rest_sats = total_sats - wanted_sats - fee_sats
            change = [TxOut(rest_sats, self.scripts[0])] if rest_sats >= CHANGE_FLOOR_SATS else []
            return sign(self.key, coins, [*outputs, *change])

        return with_fee(with_fee(0).vsize * SATS_PER_VB if fee_sats is None else fee_sats).raw

    def _coin_over(self, sats: int) -> Coin:
        return next(coin for coin in self.coins() if coin.output.value_sats >= sats)


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
        self._session = requests.Session()
        self._session.trust_env = False
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
        self.url, self.place = places["url"], places["peer"]
        self.wallet = Wallet(self)

    def __enter__(self) -> "BitcoinNode":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the process; harmless when it has ended."""
        self._session.close()
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def rpc(self, method: str, *params: Any) -> Any:
        """One JSON-RPC call. Raises NodeError."""
        call = {"id": 1, "method": method, "params": params}
        with self.lock:
            answer = self._session.post(self.url, json=call, timeout=RPC_TIMEOUT_S).json()
        if answer.get("error"):
            raise NodeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    # Time and money

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
        self.mine(1, self.wallet.address)
        self.mine(100)
        reward = self.wallet.coins(coinbases=True)
        each_sats = (reward[0].output.value_sats - SPLIT_FEE_SATS) // COINS
        outputs = [TxOut(each_sats, self.wallet.scripts[n % 2]) for n in range(COINS)]
        self.send(self.wallet.build(outputs, reward, SPLIT_FEE_SATS))
        self.mine()
        self.set_time(self.now + DAY_S)
        return self

    # Transactions

    def send(self, raw: bytes) -> str:
        """Puts a transaction into the mempool; its txid. Raises Refused."""
        answer = self.rpc("trytransaction", raw.hex())
        if answer["reason"]:
            raise Refused(answer["reason"])
        return answer["txid"]

    def pay(self, address: str, sats: int) -> str:
        return self.pay_many([(address, sats)])

    def pay_many(self, parts: Iterable[tuple[str, int]]) -> str:
        """One transaction with one output for each (address, sats), in this order; the txid."""
        with self.lock:
            outputs = [TxOut(sats, script_of(address)) for address, sats in parts]
            return self.send(self.wallet.build(outputs))

    def take_back(self, txid: str) -> bytes:
        """The double spend, raw: the wallet's coins that `txid` spends, back to the wallet."""
        return self.wallet.build([], self.spent_by(txid))

    def spent_by(self, txid: str) -> list[Coin]:
        spent = [i.outpoint for i in self.transaction(txid).inputs]
        return [Coin(o, self.transaction(o.txid).outputs[o.vout], 0) for o in spent]

    def drop(self, txid: str) -> None:
        """Forgets a waiting transaction and what spends it, as a full mempool does.

        The last first: bcoin stumbles over what descends from another in two ways.
        """
        for each in self.mempool():
            with contextlib.suppress(NodeError):  # it went with another
                if any(spent.outpoint.txid == txid for spent in self.transaction(each).inputs):
                    self.drop(each)
        if not self.rpc("droptransaction", txid):
            raise NodeError(f"{txid} is not in the mempool")

    def mempool(self) -> list[str]:
        return self.rpc("getrawmempool")

    def transaction(self, txid: str) -> Tx:
        """A transaction of the best branch or the mempool. Raises NodeError."""
        return parse_tx(bytes.fromhex(self.rpc("getrawtransaction", txid)))

    def history(self, script: bytes) -> list[tuple[Tx, int]]:
        """What touches a script, each with its height (-1: waiting), confirmed first, oldest first.

        bcoin's index knows hashes, not scripts: P2PKH and P2WPKH of one key are found together.
        """
        found = self.rpc("gethistory", script.hex())
        return [(parse_tx(bytes.fromhex(each["hex"])), each["height"]) for each in found]

    def coins(self, script: bytes, coinbases: bool = False) -> list[Coin]:
        """The unspent outputs to a script that are coinbases, or those that are not."""
        return [
            Coin(Outpoint(c["txid"], c["vout"]), TxOut(c["value"], script), c["height"])
            for c in self.rpc("getcoins", script.hex())
            if c["coinbase"] == coinbases
        ]

    # Blocks

    def tip(self) -> tuple[int, str]:
        with self.lock:
            return self.rpc("getblockcount"), self.rpc("getbestblockhash")

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
            height = self.rpc("getblockcount")
            hashes = [self.rpc("getblockhash", h) for h in range(height - depth, height + 1)]
            lost = [tx for each in hashes[1:] for tx in self.block(each).txs[1:]]
            waiting = self._empty_mempool()
            try:
                branch = [self._mine_by_hand(hashes[0], instead)]
                while len(branch) <= depth:
                    branch.append(self._mine_by_hand(branch[-1], ()))
                assert self.rpc("getbestblockhash") == branch[-1]
                waiting = [*lost, *waiting]
            finally:
                for tx in waiting:
                    self.rpc("trytransaction", tx.raw.hex())
            return branch

    def submit(self, block: Block) -> None:
        """Raises Refused unless the node takes the block, on whichever branch."""
        reason = self.rpc("submitblock", block.raw.hex())
        if reason:
            raise Refused(reason)

    def _mine_by_hand(self, previous: str, raws: Iterable[bytes]) -> str:
        """A block on `previous`, which leaves its fees unclaimed."""
        parent = self.rpc("getblockheader", previous)
        txs = [parse_tx(raw) for raw in raws]
        coinbase = build_coinbase(parent["height"] + 1, 0, script_of(NOBODY), txs)
        block = build_block(previous, max(self.now, parent["mediantime"] + 1), coinbase, txs)
        self.submit(block)
        return block.hash

    def _empty_mempool(self) -> list[Tx]:
        """What waited, each after what it spends."""
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
