"""A shop before a full node's chain, and a merchant whose wallet can spend."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bitcoin_node import NOBODY, BitcoinNode
from builders import REGTEST, Clock, TickerServer, open_shop
from fake_esplora import OWN_EXPLORER, Json, Till
from hd_wallet import HdWallet
from node_esplora import NodeEsplora
from spending import Coin, spend_p2wpkh

from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.merchants.account import derive, parse_account
from btcpay.merchants.merchants import add_merchant
from btcpay.proofs.verify import Proven, check_document
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.key import Key
from storage.queries import payments

Chain = tuple[BitcoinNode, NodeEsplora, Clock]
ACCOUNT = "m/84'/1'/0'"
WALLET_LOOKS_AHEAD = 20


@dataclass
class NodeTill(Till):
    """A till whose chain is a node's, and whose merchant can spend."""

    node: BitcoinNode
    merchant: HdWallet

    def pay(self, invoice: Json, sats: int | None = None) -> str:
        return self.pay_outputs((invoice, invoice["amount_sats"] if sats is None else sats))

    def pay_outputs(self, *parts: tuple[Json, int]) -> str:
        return self.node.pay_many([(inv["deposit_address"], sats) for inv, sats in parts])

    def mine(self, blocks: int = 1) -> None:
        self.node.set_time(self.now)
        self.node.mine(blocks)

    def state(self, invoice: Json) -> tuple[str, int, int]:
        """The checkout page's news: status, satoshis received and unconfirmed."""
        body = self.shop.client.get(f"/pay/{invoice['id']}/status").json
        return body["status"], body["received_sats"], body["unconfirmed_sats"]

    def proof(self, invoice: Json) -> Proven:
        """The facts proven offline by the invoice's only payment."""
        rows = self.shop.service.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice["id"])
        (proven,) = (check_document(json.loads(row.document)) for row in rows)
        return proven

    def sweep(self, invoice: Json, txid: str) -> str:
        """The merchant's wallet moves what `txid` paid to the invoice; the sweep's txid."""
        script = script_of(invoice["deposit_address"])
        outputs = enumerate(self.node.transaction(txid).outputs)
        coins = [Coin(Outpoint(txid, n), out, 0) for n, out in outputs if out.script == script]
        total_sats = sum(coin.output.value_sats for coin in coins)
        tx = spend_p2wpkh(self.key_of(invoice), coins, [TxOut(total_sats - 500, script_of(NOBODY))])
        return self.node.send(tx.raw)

    def key_of(self, invoice: Json) -> Key:
        account = str(parse_account(self.merchant.at(ACCOUNT).xpub(), REGTEST))
        for index in range(WALLET_LOOKS_AHEAD):
            if derive(account, index, REGTEST) == invoice["deposit_address"]:
                path = f"{ACCOUNT}/0/{index}"
                return Key(self.merchant.at(path).secret)
        raise AssertionError("the merchant's wallet does not find this address")


@contextlib.contextmanager
def open_chain() -> Iterator[Chain]:
    """A node with a funded wallet, its explorer, and a clock that starts at the present."""
    with BitcoinNode() as node, NodeEsplora(node.fund()) as esplora:
        yield node, esplora, Clock()


@contextlib.contextmanager
def open_node_till(
    folder: Path, ticker: TickerServer, chain: Chain, **environ: str
) -> Iterator[NodeTill]:
    """A new shop on the chain, a minute after the one before; leaves nothing in the mempool."""
    node, esplora, clock = chain
    ticker.reset()
    clock.move(minutes=1)
    wallet = HdWallet.from_seed(str(folder).encode())
    environ = {"BTCPAY_EXPLORERS": esplora.root} | OWN_EXPLORER | environ
    with open_shop(folder, ticker.url, clock, **environ) as shop:
        account = parse_account(wallet.at(ACCOUNT).xpub(), REGTEST)
        shop.merchant_id = add_merchant(shop.service.db, "spender", account, clock()).id
        shop.write_key, shop.read_key = shop.issue("write"), shop.issue("read")
        try:
            yield NodeTill(shop, None, clock, node, wallet)
        finally:
            for txid in node.mempool():
                if txid in node.mempool():
                    node.drop(txid)
