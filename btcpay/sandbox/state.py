"""One running sandbox: its chain, its payer, its ticker and faults, and its clock."""

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

# 200 make 100 coinbases mature, so that 100 payments need not wait for each other.
FIRST_BLOCKS = 200
FIRST_BLOCKS_APART_S = 600
FIRST_PRICE_USD = Decimal("60000.00")
SHOWN_EVENTS = 14
EXTENSION = "blocktill-sandbox"


@dataclass
class InventedPayment:
    """A payment that nobody has sent: an explorer that lies shows it, waiting and in new blocks.

    It is in every block above `since_height`; `blocks_shown`: the number of such answers.
    """

    entry: ChainTx
    since_height: int
    blocks_shown: int = 0

    def put_into(self, block: Block, height: int) -> bytes:
        """The raw block with the payment, which its header does not prove."""
        if height <= self.since_height:
            return block.raw
        self.blocks_shown += 1
        return replace(block, txs=(*block.txs, self.entry.tx)).raw


@dataclass
class Switches:
    """The state that buttons set; `notice` is the page's sentence about the last press.

    `explorer` is up, down, or lies (about what is `invented`); `price` is up or down.
    """

    price_usd: Decimal = FIRST_PRICE_USD
    explorer: str = "up"
    price: str = "up"
    invented: InventedPayment | None = None
    notice: str = ""

    def mend(self) -> None:
        """Has explorer and price answer again, with the truth."""
        self.explorer = "up"
        self.price = "up"
        self.invented = None


@dataclass(frozen=True)
class Sandbox:
    """`clock`: unix seconds; `events`: the shop's, the newest first.

    Its methods raise BadRequest for anything impossible.
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
        """The new hashes; with `double_spend` the lost payments become impossible."""
        with self.chain.lock:
            instead: list[bytes] = []
            if double_spend:
                instead = wallets.double_spends(self.wallet, depth)
            return self.chain.reorganise(depth, self.clock(), instead)

    def invent(self, invoice: Json) -> InventedPayment:
        """Lets the explorer lie about a payment of the whole invoice."""
        with self.chain.lock:
            payment = {invoice["deposit_address"]: invoice["amount_sats"]}
            tx = parse_tx(self.wallet.draft(payment))
            entry = self.chain.mempool.judge(self.chain.ledger, tx)
            invented = InventedPayment(entry, self.chain.ledger.height)
        self.switches.invented = invented
        self.switches.explorer = "lies"
        return invented

    def close(self) -> None:
        self.stage.stop()
        self.chain.journal.close()


def open_sandbox(
    state_dir: Path, clock: Callable[[], int], shop: Shop | None = None
) -> Sandbox:
    """Continues the chain in `state_dir`, or begins one; locks it. Raises JournalError."""
    state_dir.mkdir(parents=True, exist_ok=True)
    journal = Journal(state_dir / "chain.db")
    key = open_key(state_dir / "wallet.key")
    chain = Chain(journal, key.script)
    now = clock()
    # Blocks of the past, ten minutes apart: the next one can then have the time of the clock.
    for height in range(chain.ledger.height + 1, FIRST_BLOCKS + 1):
        age_s = (FIRST_BLOCKS - height) * FIRST_BLOCKS_APART_S
        chain.mine(1, now - age_s)
    return Sandbox(chain, Wallet(key, chain), clock, state_dir, shop)


def current_sandbox() -> Sandbox:
    """The sandbox that this request is about."""
    return cast(Sandbox, current_app.extensions[EXTENSION])
