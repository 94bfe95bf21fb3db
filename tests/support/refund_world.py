"""What happens around a shop with refunds, at random, and what of it the model is told."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from btcpay.bitcoin.tx import TxOut
from btcpay.parts.refunds import queries
from btcpay.parts.refunds.models import Refund
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.coins import choose
from btcpay.sandbox.payer.wallet import double_spends, replace
from storage.queries import invoices
from tests.support.fake_esplora import NOT_FOUND, LiedTo
from tests.support.refund_model import Block, Model, Tx, outputs
from tests.support.serving import Reply
from tests.support.shop_refunds import address

SUMS = (1_000, 2_000, 3_000)
FOREIGN = (*SUMS, 700, 990, 2_900, 250_000)
FEE_SATS = 2_000
PRICE = 3  # dollars of an invoice: about five thousand satoshis


@dataclass
class World:
    """A chain with payers, strangers and miners, and the shop that reads it, beside the model."""

    till: LiedTo
    dice: random.Random
    model: Model = field(default_factory=lambda: Model(words_return=True))
    # of the model's refunds: the product's ids
    names: dict[str, str] = field(default_factory=dict)
    did: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.db = self.till.shop.service.db
        self.addresses = [address(1), address(2), address(3, version=1)]
        self.base = self.till.sandbox.chain.ledger.height
        self.invoices = [
            self.till.shop.invoice(PRICE, expires_in_hours=None) for _ in range(3)
        ]
        self.watched = {script_of(to): to for to in self.addresses}
        for one in self.invoices:
            self.watched[script_of(one["deposit_address"])] = one["deposit_address"]
            self.model.open(one["id"], "ours", one["amount_sats"])
        self.merchants = {
            one["id"]: self.db.get(invoices.WHOLE, id=one["id"]).merchant_id
            for one in self.invoices
        }

    def pay(self) -> None:
        """An invoice is paid, in part, or too much."""
        invoice = self.dice.choice(self.invoices)
        if self.model.invoices[invoice["id"]].paid and self.dice.random() < 0.7:
            return
        sats = invoice["amount_sats"] * self.dice.choice([2, 5, 10, 15]) // 10
        self.till.pay(invoice, sats)

    def pay_others(self) -> None:
        """The merchant's wallet or a stranger pays to payers' addresses, several in one."""
        wallet = self.till.sandbox.wallet
        parts = [
            TxOut(
                self.dice.choice(FOREIGN), script_of(self.dice.choice(self.addresses))
            )
            for _ in range(self.dice.choice([1, 1, 2, 4]))
        ]
        coins = choose(wallet.coins(), sum(out.value_sats for out in parts) + FEE_SATS)
        self.till.sandbox.chain.accept(
            wallet.build(coins, parts, FEE_SATS), self.till.now
        )

    def pay_a_refund(self) -> None:
        """Exactly what one of those that wait asks for."""
        ready = [one for one in self.rows().values() if one.status == "ready"]
        if ready:
            one = self.dice.choice(ready)
            assert one.address
            self.till.sandbox.wallet.pay(one.address, one.amount_sats, self.till.now)

    def replace(self) -> None:
        """What waits is paid anew with a higher fee, or taken back."""
        wallet = self.till.sandbox.wallet
        if wallet.payments():
            txid = self.dice.choice(wallet.payments())
            replace(wallet, self.till.now, txid, away=self.dice.random() < 0.4)
            self.did["replaced"] += 1

    def mine(self) -> None:
        self.till.clock.move(minutes=self.dice.choice([1, 7, 15]))
        self.till.mine(self.dice.choice([1, 1, 2, 3]))

    def reorganise(self) -> None:
        """Some of what the blocks had is spent otherwise, the rest waits, or is in a new block."""
        chain = self.till.sandbox.chain
        depth = self.dice.randint(1, 4)
        if chain.ledger.height - depth < self.base:
            return
        instead = [
            raw
            for raw in double_spends(self.till.sandbox.wallet, depth)
            if self.dice.random() < 0.3
        ]
        try:
            chain.reorganise(depth, self.till.now, instead)
        except BadRequest:  # its coin was made in a block that goes
            chain.reorganise(depth, self.till.now)
        self.did["reorganised"] += 1

    def rows(self) -> dict[str, Refund]:
        rows = {
            row.id: row
            for one in self.invoices
            for row in self.db.rows(queries.OF_INVOICE, invoice_id=one["id"])
        }
        return {name: rows[id] for name, id in self.names.items()}

    def check(self) -> None:
        """It reads what an explorer shows: some of the new blocks, in any order."""
        # a block that none could show is asked for again
        self.till.clock.move(minutes=61)
        self.till.liar.instead = self._hide(self.dice.choice([0, 0.5, 0.7]))
        self._check()

    def check_all(self) -> None:
        self.till.clock.move(minutes=61)
        self.till.liar.instead = self._hide(0)
        self._check()
        assert not self.unread()

    def _hide(self, share: float) -> Callable[[str], Reply | None]:
        ledger = self.till.sandbox.chain.ledger
        hidden = {
            hash for hash in ledger.hashes[self.base :] if self.dice.random() < share
        }

        def reply(path: str) -> Reply | None:
            return (
                NOT_FOUND
                if any(one in path and "raw" in path for one in hidden)
                else None
            )

        return reply

    def _check(self) -> None:
        self.till.check()
        self._tell()

    def headers(self) -> list[Any]:
        """Height, hash, and when it was read, of the blocks that the shop knows."""
        rows = self.till.shop.sql(
            "SELECT height, hash, read_ms FROM block ORDER BY height"
        )
        return [row for row in rows.fetchall() if row[0] > self.base]

    def unread(self) -> list[Any]:
        return [one for one in self.headers() if not one[2]]

    def _tell(self) -> None:
        """Tells the model which blocks the shop has and has read."""
        model = self.model
        rows = self.headers()
        known = {hash for _, hash, _ in rows}
        gone = [block for block in model.chain if block.id not in known]
        if gone:
            model.reorganise(len(gone), [])
            self.did["taken back"] += 1
        had = {block.id for block in model.chain}
        reading = [bool(read) for _, _, read in rows]
        self.did["out of order"] += reading != sorted(reading, reverse=True)
        for height, hash, read in rows:
            model.seen.add(hash)
            if read and hash not in had:
                model.chain.append(self._block(height, hash))
        model.chain.sort(key=lambda block: block.height)
        came = Counter[str]()
        for out in outputs(model.chain):
            came[out.address] += out.sats
        for one in self.invoices:
            model.come(
                one["id"], came[one["deposit_address"]] - model.invoices[one["id"]].came
            )

    def _block(self, height: int, hash: str) -> Block:
        txs = [
            Tx(
                tx.txid,
                tuple(
                    (self.watched.get(o.script, ""), o.value_sats) for o in tx.outputs
                ),
            )
            for tx in self.till.sandbox.chain.ledger.blocks[hash].txs
        ]
        return Block(hash, height, tuple(txs))
