"""The state of a running sandbox: chain, wallet, price, simulated faults and clock."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from flask import current_app

from btcpay.bitcoin.tx import parse_tx
from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.chain import Chain, Journal
from btcpay.sandbox.node.ledger import ChainTx
from btcpay.sandbox.payer import wallet as wallets
from btcpay.sandbox.payer.key import open_key
from btcpay.sandbox.payer.wallet import Wallet
from btcpay.sandbox.scenes.stage import Stage
from btcpay.sandbox.shop import Json, Shop

# 200 blocks have 100 mature coinbases, enough for 100 payments without unconfirmed
# coins.
FIRST_BLOCKS = 200
FIRST_BLOCKS_APART_S = 600
FIRST_PRICE_USD = Decimal("60000.00")
SHOWN_EVENTS = 14
EXTENSION = "blocktill-sandbox"


@dataclass
class InventedPayment:
    """A payment that nobody has sent, but that a lying explorer shows.

    The explorer shows it as an unconfirmed transaction, and also in every block above
    `since_height`. `blocks_shown` counts the responses with such a block.
    """

    entry: ChainTx
    since_height: int
    blocks_shown: int = 0

    def put_into(self, block: Block, height: int) -> bytes:
        """Returns the bytes of the block that the lying explorer shows at this height.

        Up to `since_height` it is the true block. Above that the payment is added to
        its transactions, and `blocks_shown` is increased. The block's merkle root does
        not cover the payment, so the service can see that the block is false.
        """
        if height <= self.since_height:
            return block.raw
        self.blocks_shown += 1
        return replace(block, txs=(*block.txs, self.entry.tx)).raw


@dataclass
class Switches:
    """The settings that the page's buttons change.

    - `explorer`: "up", "down", or "lies", which means that it shows the payment
      `invented`.
    - `price`: "up" or "down", the state of the price ticker.
    - `notice`: the sentence about the last click.
    """

    price_usd: Decimal = FIRST_PRICE_USD
    explorer: str = "up"
    price: str = "up"
    invented: InventedPayment | None = None
    notice: str = ""

    def mend(self) -> None:
        """Ends the simulated faults of the block explorer and the price ticker."""
        self.explorer = "up"
        self.price = "up"
        self.invented = None


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox. Its methods raise BadRequest if an action is not possible.

    `clock` returns unix seconds. `events` are the events received from the shop, newest
    first.
    """

    chain: Chain
    wallet: Wallet
    clock: Callable[[], int]
    state_dir: Path
    shop: Shop | None = None
    switches: Switches = field(default_factory=Switches)
    stage: Stage = field(default_factory=Stage)
    events: deque[dict[str, Any]] = field(
        default_factory=lambda: deque(maxlen=SHOWN_EVENTS)
    )

    def require_shop(self) -> Shop:
        if self.shop is None:
            raise BadRequest(
                "no shop runs beside this chain; `blocktill sandbox` starts both"
            )
        return self.shop

    def pay(self, address: str, sats: int) -> str:
        return self.wallet.pay(address, sats, self.clock())

    def mine(self, count: int) -> list[str]:
        return self.chain.mine(count, self.clock())

    def replace(self, txid: str, away: bool) -> str:
        return wallets.replace(self.wallet, self.clock(), txid, away)

    def reorganise(self, depth: int, double_spend: bool) -> list[str]:
        """Replaces the last `depth` blocks, and returns the hashes of the new ones.

        If `double_spend` is True, the wallet's payments in the replaced blocks become
        invalid.
        """
        with self.chain.lock:
            instead: list[bytes] = []
            if double_spend:
                instead = wallets.double_spends(self.wallet, depth)
            return self.chain.reorganise(depth, self.clock(), instead)

    def invent(self, invoice: Json) -> InventedPayment:
        """Makes the explorer show a payment to the invoice that nobody has sent."""
        with self.chain.lock:
            payment = {invoice["deposit_address"]: invoice["amount_sats"]}
            tx = parse_tx(self.wallet.draft(payment))
            entry = self.chain.mempool.validate(self.chain.ledger, tx)
            invented = InventedPayment(entry, self.chain.ledger.height)
        self.switches.invented = invented
        self.switches.explorer = "lies"
        return invented

    def close(self) -> None:
        self.stage.stop()
        self.chain.journal.close()


def open_sandbox(
    state_dir: Path,
    clock: Callable[[], int],
    shop: Shop | None = None,
) -> Sandbox:
    """Opens the chain in `state_dir` and locks it, so that no other sandbox can use it.

    If the chain has fewer than 200 blocks, mines the missing ones. Raises JournalError
    if the chain's file is damaged, or another sandbox uses it.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    journal = Journal(state_dir / "chain.db")
    key = open_key(state_dir / "wallet.key")
    chain = Chain(journal, key.script)
    now = clock()
    # These blocks are in the past, ten minutes apart, so that the next one can have the
    # clock's time.
    for height in range(chain.ledger.height + 1, FIRST_BLOCKS + 1):
        age_s = (FIRST_BLOCKS - height) * FIRST_BLOCKS_APART_S
        chain.mine(1, now - age_s)
    return Sandbox(chain, Wallet(key, chain), clock, state_dir, shop)


def current_sandbox() -> Sandbox:
    """Returns the sandbox of the current Flask app."""
    return cast(Sandbox, current_app.extensions[EXTENSION])
