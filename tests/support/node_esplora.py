"""Esplora over a full node: a public explorer's answers about its chain.

Source: Blockstream/esplora API.md.
"""

from http.server import BaseHTTPRequestHandler
from typing import Any

from bitcoin_node import BitcoinNode, NodeError
from serving import Reply, Serving, say

from btcpay.bitcoin.tx import Outpoint, Tx, TxOut
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.script import script_of

Json = Any
Answer = Json | str | bytes
CHAIN_TXS_PER_PAGE, MAX_MEMPOOL_TXS, BLOCKS_PER_PAGE = 25, 50, 10


class NotThere(Exception):
    """Answered with 404 and this text."""


class NodeEsplora(Serving):
    def __init__(self, node: BitcoinNode) -> None:
        super().__init__()
        self.node = node
        self._txs: dict[str, Tx] = {}  # never change, unlike where they are

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        path = request.path.partition("?")[0]
        try:
            with self.node.lock:
                return say(self._truth(path.split("/")[1:]))
        except NotThere as error:
            return say(str(error), 404)
        except BadRequest as error:
            return say(str(error), 400)

    def _truth(self, path: list[str]) -> Answer:
        """Raises NotThere, BadRequest."""
        tip = self.node.tip()[0]
        match path:
            case ["blocks", "tip", "height"]:
                return str(tip)
            case ["blocks", "tip", "hash"]:
                return self._hash_at(tip)
            case ["blocks", *start]:
                top = int(start[0]) if start else tip
                heights = range(top, max(-1, top - BLOCKS_PER_PAGE), -1)
                return [self._block(self._hash_at(height)) for height in heights]
            case ["block-height", height]:
                return self._hash_at(int(height))
            case ["block", block_hash, "header" | "raw" as what]:
                self._header(block_hash)
                method = "getblockheader" if what == "header" else "getblock"
                raw = self.node.rpc(method, block_hash, False)
                return raw if what == "header" else bytes.fromhex(raw)
            case ["address", address, "txs"]:
                waiting, confirmed = self._history(address)
                return waiting[:MAX_MEMPOOL_TXS] + confirmed[:CHAIN_TXS_PER_PAGE]
            case ["address", address, "txs", "mempool"]:
                return self._history(address)[0][:MAX_MEMPOOL_TXS]
        raise NotThere(f'endpoint does not exist "/{"/".join(path)}"')

    def _hash_at(self, height: int) -> str:
        if height > self.node.tip()[0]:
            raise NotThere("Block not found")
        return self.node.rpc("getblockhash", height)

    def _header(self, block_hash: str) -> Json:
        """Raises NotThere for a block that the node does not have, on no branch."""
        try:
            return self.node.rpc("getblockheader", block_hash)
        except NodeError:
            raise NotThere("Block not found") from None

    def _block(self, block_hash: str) -> Json:
        header = self._header(block_hash)
        return {
            "id": block_hash, "height": header["height"], "version": header["version"],
            "timestamp": header["time"], "merkle_root": header["merkleroot"],
            "previousblockhash": header["previousblockhash"],
            "nonce": self.node.block(block_hash).nonce, "bits": header["bits"],
        }  # fmt: skip

    def _tx(self, txid: str) -> Tx:
        """A transaction that was on the best branch or waiting when it was first asked for."""
        if txid not in self._txs:
            self._txs[txid] = self.node.transaction(txid)
        return self._txs[txid]

    def _tx_json(self, tx: Tx, height: int | None) -> Json:
        self._txs[tx.txid] = tx
        outpoints = [spending.outpoint for spending in tx.inputs]
        return {
            "txid": tx.txid,
            "vin": [{"txid": spent.txid, "vout": spent.vout} for spent in outpoints],
            "vout": [{"scriptpubkey": o.script.hex(), "value": o.value_sats} for o in tx.outputs],
            "status": {"confirmed": height is not None},
        }

    def _output(self, outpoint: Outpoint) -> TxOut:
        return self._tx(outpoint.txid).outputs[outpoint.vout]

    def _history(self, address: str) -> tuple[list[Json], list[Json]]:
        """Waiting and confirmed transactions of an address, newest first each."""
        script = script_of(address)
        found = [pair for pair in self.node.history(script) if self._touches(pair[0], script)]
        waiting = [self._tx_json(tx, None) for tx, height in reversed(found) if height < 0]
        confirmed = [self._tx_json(tx, height) for tx, height in reversed(found) if height >= 0]
        return waiting, confirmed

    def _touches(self, tx: Tx, script: bytes) -> bool:
        spent = [] if tx.is_coinbase else [self._output(i.outpoint) for i in tx.inputs]
        return any(output.script == script for output in [*tx.outputs, *spent])
