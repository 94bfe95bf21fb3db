"""The protocols that every source of the chain implements.

A `BlockSource` shows headers and whole blocks. An `Explorer` (explorers/esplora.py) also shows what
waits for an address. A `Listener` hears announced transactions.
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

# Errors after which the next source is asked.
FAILURES = (FetchError, ProofFailed)
# So many inputs of a waiting transaction are kept: enough to notice a replacement.
MAX_INPUTS = 100
# Blocks come in bunches, but a source that is three behind is stuck.
MAX_BLOCKS_BEHIND = 2


class SourceExcluded(FetchError):
    """The source refused, or failed too often, and is not asked any more in this run."""


class BudgetSpent(FetchError):
    """The source's calls for the hour are spent, or its time in this run."""


class WrongNetwork(FetchError):
    """The source shows the chain of another network."""


@dataclass(frozen=True)
class Allowance:
    """The calls that a run may spend.

    `per_hour` is the quota of one explorer, since a second one is a reserve. `left` is the most
    calls that any of them has left. `minutely` calls may be spent in each minute until the calls of
    the past hour are free again.
    """

    per_hour: int
    left: int
    minutely: float


UNLIMITED = Allowance(10**9, 10**9, 10**9)


class BlockSource(Protocol):
    """Shows a chain; its callers believe none of it. Raises FetchError if it does not answer.

    `host` is the part of its address that may be shown. `calls` counts questions, and `bytes_read`
    the bytes of the answers. It asks nothing after `until_s` of `time.monotonic()`.
    """

    host: str
    calls: int
    bytes_read: int
    until_s: float

    def tip_height(self) -> int:
        """The height of its best block, as it claims."""

    def headers_after(self, locator: Sequence[Known]) -> Iterator[list[bytes]]:
        """Headers of its best chain in ascending order, some at a time, up to its tip.

        The first follows a block of the locator, which has blocks of ours: the newest first, with
        gaps, down to the first that we keep. Some headers may be ours too. There are none if our
        newest block is its tip.
        """

    def headers_before(self, at: datetime, below: int) -> tuple[int, list[bytes]]:
        """The last header that is not younger than `at`: its height, and headers that end with it.

        They ascend, with up to `below` headers before it. If all of the chain's headers are
        younger, it is the first one.
        """

    def header_at(self, height: int) -> bytes:
        """The header of its best chain at this height."""

    def raw_block(self, hash: str) -> bytes:
        """The whole block of this hash; 4,000,000 bytes at most."""


def fetch_proven_block(source: BlockSource, hash: str) -> ProvenBlock:
    """The whole block, proven by its header. Raises FetchError, ProofFailed."""
    return prove_block(source.raw_block(hash), hash)


class Mempool(NamedTuple):
    """Waiting outputs, as `host` showed them; more may wait unless `is_whole`."""

    outputs: list[SeenOutput]
    is_whole: bool
    host: str = ""


class Explorer(BlockSource, Protocol):
    """A source that also knows addresses. Its answers about them are sightings, never proofs.

    Its calls are counted by its `name`. `exclusion_reason`: the reason not to ask it, or "".
    """

    name: str
    exclusion_reason: str

    def block_hash(self, height: int) -> str:
        """The hash of its block at this height, as it claims."""

    def require_chain(self, known_height: int) -> tuple[int, bytes]:
        """The height and header of its tip. Raises FetchError if it is below `known_height`.

        Raises WrongNetwork unless it follows our network's chain.
        """

    def mempool(self, address: str, script: bytes) -> Mempool:
        """The waiting outputs that pay `script`, the scriptPubKey of `address`."""

    def is_used(self, address: str) -> bool:
        """True if the chain or the mempool knows the address."""


@dataclass(frozen=True)
class AnnouncedTx:
    """A waiting transaction that enough peers announced.

    `host` is the last of these, `at` the time when it announced it.
    """

    raw: bytes
    host: str
    at: datetime

    @cached_property
    def contents(self) -> BlockContents:
        """The transaction, scanned as the only one of a block. Raises DecodeError."""
        empty_header = bytes(HEADER_BYTES)
        one_transaction = b"\x01"
        return scan_block(empty_header + one_transaction + self.raw)


class Listener(Protocol):
    """Hears the transactions that sources announce."""

    def listen(self, is_wanted: bool) -> None:
        """Starts and goes on listening; it is called again and again.

        `is_wanted`: transactions will be taken, also those that were announced before.
        """

    def take(self) -> Sequence[AnnouncedTx]:
        """The announced transactions that were not taken yet, each once."""

    def replaces(self, new: bytes, old: bytes) -> bool:
        """True if more sources announce `new` than `old`, which spends the same coin.

        If not, `new` can be taken once more after another source announces it.
        """
