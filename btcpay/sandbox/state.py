"""One running sandbox: its chain, its payer, its ticker and faults, and its clock."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from flask import Flask, current_app

from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.journal import Journal
from btcpay.sandbox.payer.keyfile import open_key
from btcpay.sandbox.payer.wallet import Wallet

FIRST_BLOCKS = 200  # so that 100 coinbases are mature: 100 payments need not wait for one another
FIRST_BLOCKS_APART_S = 600
FIRST_PRICE_USD = Decimal("60000.00")
EXTENSION = "btcpay-sandbox"


@dataclass
class Switches:
    """What the buttons set: the price in dollars, and which of the two services are down.

    `told` is what the page says of the last button.
    """

    price_usd: Decimal = FIRST_PRICE_USD
    explorer_up: bool = True
    price_up: bool = True
    told: str = ""


@dataclass(frozen=True)
class Sandbox:
    """`clock` gives unix seconds."""

    chain: Chain
    wallet: Wallet
    switches: Switches
    clock: Callable[[], int]
    journal: Journal

    def close(self) -> None:
        """Lets another sandbox use the state directory."""
        self.journal.close()


def open_sandbox(state_dir: Path, clock: Callable[[], int]) -> Sandbox:
    """Continues the chain in `state_dir`, or begins one. Raises JournalError."""
    state_dir.mkdir(parents=True, exist_ok=True)
    journal = Journal(state_dir / "chain.jsonl")
    key = open_key(state_dir / "wallet.wif")
    chain = Chain(journal, key.script)
    _mine_first_blocks(chain, clock())
    return Sandbox(chain, Wallet(key, chain), Switches(), clock, journal)


def _mine_first_blocks(chain: Chain, now: int) -> None:
    """Blocks of the past, ten minutes apart: the next one can then have the time of the clock."""
    for height in range(chain.ledger.height + 1, FIRST_BLOCKS + 1):
        chain.mine(1, now - (FIRST_BLOCKS - height) * FIRST_BLOCKS_APART_S)


def attach(app: Flask, sandbox: Sandbox) -> None:
    """Makes `sandbox` what `current` finds during the requests of `app`."""
    app.extensions[EXTENSION] = sandbox


def current() -> Sandbox:
    """The sandbox of the request being answered."""
    return current_app.extensions[EXTENSION]
