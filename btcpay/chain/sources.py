"""The protocols of sources, which show the chain and the mempool: a new one implements these.

A `BlockSource` shows headers and whole blocks; an `Explorer` (explorers/esplora.py) also what waits
for an address.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Protocol

from btcpay.bitcoin.block import BlockContents, scan_block
from btcpay.bitcoin.header import HEADER_BYTES
from btcpay.proofs.block import ProvenBlock, prove_block
from btcpay.settlement.values import SeenOutput
from btcpay.values.errors import FetchError, ProofFailed
from btcpay.values.networks import Known

# Errors after which a question goes to the next source.
FAILURES = (FetchError, ProofFailed)
MAX_INPUTS = 100  # inputs kept of a waiting transaction: enough to notice a replacement
MAX_BLOCKS_BEHIND = 2  # blocks come in bunches; a source three behind is stuck


class SourceExcluded(FetchError):
    """The source is not asked any more, since it refused or failed too often in this run."""


class BudgetSpent(FetchError):
    """Its calls for the hour, or its time in this run, are spent."""


class WrongNetwork(FetchError):
    """It shows the chain of another network."""


@dataclass(frozen=True)
class Allowance:
    """The calls that a run may spend.

    `per_hour` is the quota of one explorer, as a second one is a reserve. `left` is the most that
    any has left; at `minutely` calls that lasts until the calls of the past hour come back.
    """

    per_hour: int
    left: int
    minutely: float


UNLIMITED = Allowance(10**9, 10**9, 10**9)


class BlockSource(Protocol):
    """Shows a chain, of which nothing is believed. Raises FetchError when it does not answer.

    `host` is what may be shown of its address. `calls` counts questions, `bytes_read` the answers;
    nothing is asked after `until_s` of `time.monotonic()`.
    """

    host: str
    calls: int
    bytes_read: int
    until_s: float

    def tip_height(self) -> int:
        """Height of its best block, by its own word."""

    def headers_after(self, locator: Sequence[Known]) -> Iterator[list[bytes]]:
        """Headers of its best chain, ascending, some at a time, up to its tip.

        The first follows a block of the locator: ours, the newest first, with gaps, down to the
        first that we keep. Some may be ours too. None when our newest block is its tip.
        """

    def headers_before(self, at: datetime, below: int) -> tuple[int, list[bytes]]:
        """The last header that is not younger than `at`, and as many as `below` under it.

        Ascending, with the height of the last one; the very first header if all are younger.
        """

    def header_at(self, height: int) -> bytes:
        """The header of its best chain at this height."""

    def raw_block(self, hash: str) -> bytes:
        """The whole block of this hash; 4,000,000 bytes at most."""


def fetch_proven_block(source: BlockSource, hash: str) -> ProvenBlock:
    """The whole block, which its header proves. Raises FetchError, ProofFailed."""
    return prove_block(source.raw_block(hash), hash)


class Mempool(NamedTuple):
    """Outputs that wait, as `host` showed them; unless `is_whole`, more may wait unlisted."""

    outputs: list[SeenOutput]
    is_whole: bool
    host: str = ""


class Explorer(BlockSource, Protocol):
    """Knows addresses, too: these answers are sightings, never proofs.

    Its calls are counted by its `name`. `left_alone`: the reason not to ask it, or "".
    """

    name: str
    exclusion_reason: str

    def block_hash(self, height: int) -> str:
        """The hash of its block at this height, by its own word."""

    def require_chain(self, known_height: int) -> tuple[int, bytes]:
        """Its tip's height and header. Raises FetchError if that is lower than `known_height`.

        Raises OtherNetwork unless it follows our network's chain.
        """

    def mempool(self, address: str, script: bytes) -> Mempool:
        """The waiting outputs that pay `script`, the address's scriptPubKey."""

    def is_used(self, address: str) -> bool:
        """True if the chain or the mempool knows the address."""


@dataclass(frozen=True)
class AnnouncedTx:
    """A waiting transaction, the last peer that announced it, and the time when it counted."""

    raw: bytes
    host: str
    at: datetime

    @cached_property
    def contents(self) -> BlockContents:
        """The transaction as the only one of a block. Raises DecodeError."""
        return scan_block(bytes(HEADER_BYTES) + b"\x01" + self.raw)


class Listener(Protocol):
    """Hears the transactions that sources announce, once it is told to."""

    def listen(self, is_wanted: bool) -> None:
        """Called again and again; `is_wanted`: transactions will be taken, late ones too."""

    def take(self) -> Sequence[AnnouncedTx]:
        """The announced transactions that were not taken yet, each once."""

    def replaces(self, new: bytes, old: bytes) -> bool:
        """True if more sources announce `new` than `old`, a transaction that spends the same coin.

        If not, `new` can be taken once more when another source announces it.
        """
