"""Another chain than the sandbox's: the same blocks up to a fork, then its own, as hard as told.

As an explorer's `instead` it answers what is asked of headers and blocks; the rest is passed on.
"""

from collections.abc import Sequence

from btcpay.bitcoin.header import bits_of, target_of
from btcpay.bitcoin.tx import Tx
from btcpay.sandbox.node.block import BITS, build_block, build_coinbase
from tests.support.fake_esplora import Till, of_blocks
from tests.support.serving import Reply

HARDER = bits_of(target_of(BITS) // 8)  # a block of this target has the work of eight


class Rival:
    """Begins as the sandbox's chain up to a height, its tip unless told otherwise."""

    def __init__(self, till: Till, height: int | None = None) -> None:
        ledger = till.sandbox.chain.ledger
        height = ledger.height if height is None else height
        self.till = till
        self.blocks = [ledger.blocks[hash] for hash in ledger.hashes[: height + 1]]
        self.asked: list[str] = []

    @property
    def height(self) -> int:
        return len(self.blocks) - 1

    def add(
        self,
        count: int = 1,
        txs: Sequence[Tx] = (),
        bits: int = BITS,
        at: int | None = None,
    ) -> "Rival":
        """Blocks of its own, the first of them with `txs`; of the present unless told otherwise."""
        for number in range(count):
            inside = txs if number == 0 else ()
            coinbase = build_coinbase(self.height + 1, 0, b"\x51", inside)
            time = max(self.till.now if at is None else at, self.blocks[-1].time + 1)
            self.blocks.append(
                build_block(self.blocks[-1].hash, time, coinbase, inside, bits)
            )
        return self

    def __call__(self, path: str) -> Reply | None:
        """The answer of an explorer that has this chain; None for what it does not know."""
        self.asked.append(path)
        return of_blocks(dict(enumerate(self.blocks)), self.height, path)
