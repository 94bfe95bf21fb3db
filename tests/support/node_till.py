"""A shop before a full node's chain, and a merchant whose wallet can spend."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from btcpay.bitcoin.tx import Tx
from btcpay.merchants.merchants import add_merchant
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.key import Key
from storage.queries import invoices
from tests.support.account_texts import account_of
from tests.support.bitcoin_node import BitcoinNode
from tests.support.builders import REGTEST, Clock, TickerServer, open_shop
from tests.support.fake_esplora import NOT_FOUND, OWN_EXPLORER, Json, Till, of_blocks
from tests.support.hd_wallet import HdWallet
from tests.support.serving import Reply, Serving, say

ACCOUNT = "m/84'/1'/0'"
CHAIN_TXS_PER_PAGE = 25
MAX_MEMPOOL_TXS = 50


class NodeEsplora(Serving):
    """A public explorer's answers about a node's chain and mempool (Blockstream/esplora API.md)."""

    def __init__(self, node: BitcoinNode) -> None:
        super().__init__()
        self.node = node

    def answer(self, request: BaseHTTPRequestHandler) -> Reply:
        path = request.path.partition("?")[0]
        with self.node.lock:
            blocks = dict(enumerate(self.node.chain()))
            return of_blocks(blocks, len(blocks) - 1, path) or self._of_address(path)

    def _of_address(self, path: str) -> Reply:
        """The transactions of an address, newest first, those that wait before the others."""
        match path.split("/")[1:]:
            case ["address", address, "txs", *rest]:
                try:
                    found = self.node.history(script_of(address))[::-1]
                except BadRequest as error:
                    return say(str(error), 400)
                waiting = [_tx_json(tx, False) for tx, height in found if height < 0]
                confirmed = [_tx_json(tx, True) for tx, height in found if height >= 0]
                shown = [] if rest else confirmed[:CHAIN_TXS_PER_PAGE]
                return say(waiting[:MAX_MEMPOOL_TXS] + shown)
        return NOT_FOUND


def _tx_json(tx: Tx, is_confirmed: bool) -> Json:
    outpoints = [spending.outpoint for spending in tx.inputs]
    return {
        "txid": tx.txid,
        "vin": [{"txid": spent.txid, "vout": spent.vout} for spent in outpoints],
        "vout": [
            {"scriptpubkey": o.script.hex(), "value": o.value_sats} for o in tx.outputs
        ],
        "status": {"confirmed": is_confirmed},
    }


Chain = tuple[BitcoinNode, NodeEsplora, Clock]


@dataclass
class NodeTill(Till):
    """A till whose chain is a node's, and whose merchant can spend."""

    node: BitcoinNode
    merchant: HdWallet

    def pay(self, invoice: Json, sats: int | None = None) -> str:
        return self.pay_outputs(
            (invoice, invoice["amount_sats"] if sats is None else sats)
        )

    def pay_outputs(self, *parts: tuple[Json, int]) -> str:
        return self.node.pay_many(
            [(inv["deposit_address"], sats) for inv, sats in parts]
        )

    def mine(self, blocks: int = 1) -> None:
        self.node.set_time(self.now)
        self.node.mine(blocks)

    def key_of(self, invoice: Json) -> Key:
        index = self.shop.service.db.get(invoices.WHOLE, id=invoice["id"]).address_index
        return Key(self.merchant.at(f"{ACCOUNT}/0/{index}").secret)


@contextlib.contextmanager
def open_chain() -> Iterator[Chain]:
    """A node with a funded wallet, its explorer, and a clock that starts at the present."""
    with BitcoinNode() as node, NodeEsplora(node.fund()) as esplora:
        yield node, esplora, Clock()


@contextlib.contextmanager
def open_node_till(
    folder: Path, ticker: TickerServer, chain: Chain, **environ: Any
) -> Iterator[NodeTill]:
    """A new shop on the chain, a minute after the one before; leaves nothing in the mempool."""
    node, esplora, clock = chain
    ticker.reset()
    clock.move(minutes=1)
    wallet = HdWallet.from_seed(str(folder).encode())
    environ = {"BLOCKTILL_EXPLORERS": esplora.root} | OWN_EXPLORER | environ
    with open_shop(folder, ticker.url, clock, **environ) as shop:
        account = account_of(wallet.at(ACCOUNT).xpub(), REGTEST)
        shop.merchant_id = add_merchant(shop.service.db, "spender", account, clock()).id
        shop.write_key, shop.read_key = shop.issue("write"), shop.issue("read")
        try:
            yield NodeTill(shop, None, clock, node, wallet)
        finally:
            for txid in node.mempool():
                if txid in node.mempool():
                    node.drop(txid)
