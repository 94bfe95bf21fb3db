"""One running sandbox: its chain, its payer, its ticker and faults, and its clock."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from flask import current_app

from btcpay.sandbox.esplora.invented import InventedPayment
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.journal import Journal
from btcpay.sandbox.payer.key import open_key
from btcpay.sandbox.payer.wallet import Wallet
from btcpay.sandbox.scenes.stage import Stage
from btcpay.sandbox.shop import Shop

FIRST_BLOCKS = 200  # so that 100 coinbases are mature: 100 payments need not wait for one another
FIRST_BLOCKS_APART_S = 600
FIRST_PRICE_USD = Decimal("60000.00")
SHOWN_EVENTS = 14
EXTENSION = "btcpay-sandbox"


@dataclass
class Switches:
    """The state that buttons set; `notice`: the page's sentence about the last one pressed."""

    price_usd: Decimal = FIRST_PRICE_USD
    explorer_up: bool = True
    price_up: bool = True
    invented: InventedPayment | None = None
    notice: str = ""

    @property
    def explorer(self) -> str:
        if not self.explorer_up:
            return "down"
        return "lies" if self.invented else "up"

    @property
    def price(self) -> str:
        return "up" if self.price_up else "down"

    def mend(self) -> None:
        self.explorer_up, self.price_up, self.invented = True, True, None


@dataclass(frozen=True)
class Sandbox:
    """`clock`: unix seconds; `events`: the shop's, the newest first."""

    chain: Chain
    wallet: Wallet
    clock: Callable[[], int]
    journal: Journal
    state_dir: Path
    shop: Shop | None = None
    switches: Switches = field(default_factory=Switches)
    stage: Stage = field(default_factory=Stage)
    events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=SHOWN_EVENTS))

    def close(self) -> None:
        self.stage.stop()
        self.journal.close()


def open_sandbox(state_dir: Path, clock: Callable[[], int], shop: Shop | None = None) -> Sandbox:
    """Continues the chain in `state_dir`, or begins one; locks it. Raises JournalError."""
    state_dir.mkdir(parents=True, exist_ok=True)
    journal = Journal(state_dir / "chain.jsonl")
    key = open_key(state_dir / "wallet.key")
    chain, now = Chain(journal, key.script), clock()
    # Blocks of the past, ten minutes apart: the next one can then have the time of the clock.
    for height in range(chain.ledger.height + 1, FIRST_BLOCKS + 1):
        chain.mine(1, now - (FIRST_BLOCKS - height) * FIRST_BLOCKS_APART_S)
    return Sandbox(chain, Wallet(key, chain), clock, journal, state_dir, shop)


def current() -> Sandbox:
    return cast(Sandbox, current_app.extensions[EXTENSION])
