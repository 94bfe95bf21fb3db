"""The protocols of the sources of chain data.

A `BlockSource` provides headers and blocks. An `Explorer` (explorers/esplora.py) also
provides unconfirmed transactions of an address. A `Listener` receives transactions that
peers announce.
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
from btcpay.values.networks import BlockId

# Errors after which the next source is tried.
FAILURES = (FetchError, ProofFailed)
# Maximum number of inputs that are stored of an unconfirmed transaction, to detect a replacement.
MAX_INPUTS = 100
# Several blocks may come within a minute. But a source that is three blocks behind is stuck.
MAX_BLOCKS_BEHIND = 2


class SourceExcluded(FetchError):
    """The pool must not use the source any more: the source refused or failed too often."""


class BudgetSpent(FetchError):
    """The source has used up its hourly quota of calls, or the time limit of its pool."""


class WrongNetwork(FetchError):
    """The source follows the chain of another network."""


@dataclass(frozen=True)
class Allowance:
    """The number of calls to explorers that may be made.

    `per_hour`: the quota of one explorer. Further explorers do not add to it, since
    they are only used if the first one fails.
    `left`: the calls that may be made now to the explorer that has the most of them
    left.
    `minutely`: the calls that may be made in each minute of the next hour.
    """

    per_hour: int
    left: int
    minutely: float


UNLIMITED = Allowance(10**9, 10**9, 10**9)


class BlockSource(Protocol):
    """A source of headers and blocks. The caller must verify its data.

    `host` is the part of the source's URL that may be logged. `calls` counts requests,
    and `bytes_read` the bytes of response bodies. After `until_s`, a time of
    `time.monotonic()`, no request is sent. The methods raise FetchError if the source
    does not respond.
    """

    host: str
    calls: int
    bytes_read: int
    until_s: float

    def tip_height(self) -> int:
        """Returns the height that the source claims for its tip."""

    def headers_after(self, locator: Sequence[BlockId]) -> Iterator[list[bytes]]:
        """Yields lists of headers of the source's best chain, ascending up to its tip.

        `locator` has blocks that we have stored, from the newest to the first, with
        gaps. The first header builds on one of these blocks. Some headers may be stored
        already. Yields nothing if our newest block is the source's tip.
        """

    def headers_before(self, at: datetime, below: int) -> tuple[int, list[bytes]]:
        """Returns the last header whose time is not after `at`, and headers below it.

        The result is the height of that header, and a list of up to `below` + 1 headers
        in ascending order, which ends with that header. If the times of all headers are
        after `at`, that header is the first one of the chain.
        """

    def header_at(self, height: int) -> bytes:
        """Returns the header (80 bytes) of the source's best chain at this height."""

    def raw_block(self, hash: str) -> bytes:
        """Returns the serialized block with this hash, at most 4,000,000 bytes."""


def fetch_proven_block(source: BlockSource, hash: str) -> ProvenBlock:
    """Fetches a block, and verifies that it has this hash and is complete.

    Raises FetchError, or ProofFailed if the block does not match.
    """
    return prove_block(source.raw_block(hash), hash)


class Mempool(NamedTuple):
    """Unconfirmed outputs to an address, as the explorer `host` reported them.

    If `is_whole` is false, there may be more.
    """

    outputs: list[SeenOutput]
    is_whole: bool
    host: str = ""


class Explorer(BlockSource, Protocol):
    """A source that can also look up addresses, without a proof of the results.

    `name` identifies the explorer in the count of calls. `exclusion_reason` says why
    the explorer must not be used; "" if it may be used.
    """

    name: str
    exclusion_reason: str

    def block_hash(self, height: int) -> str:
        """Returns the hash that the source claims for the block at this height."""

    def require_chain(self, known_height: int) -> tuple[int, bytes]:
        """Returns the height and the header (80 bytes) of the explorer's tip.

        Raises FetchError if the tip is below `known_height`, and WrongNetwork if the
        explorer follows the chain of another network.
        """

    def mempool(self, address: str, script: bytes) -> Mempool:
        """Returns the unconfirmed outputs that pay `script`.

        `script` is the scriptPubKey of `address`.
        """

    def is_used(self, address: str) -> bool:
        """True if the address has any transaction, confirmed or not."""


@dataclass(frozen=True)
class AnnouncedTx:
    """An unconfirmed transaction that the required number of peers has announced.

    `host` is the last of these peers, and `at` the time of its announcement.
    """

    raw: bytes
    host: str
    at: datetime

    @cached_property
    def contents(self) -> BlockContents:
        """The transaction, parsed as if it were the only one of a block.

        Raises DecodeError if the bytes are invalid.
        """
        empty_header = bytes(HEADER_BYTES)
        one_transaction = b"\x01"
        return scan_block(empty_header + one_transaction + self.raw)


class Listener(Protocol):
    """A collector of the unconfirmed transactions that sources announce."""

    def listen(self, is_wanted: bool) -> None:
        """Starts to listen, or continues. The caller must call this repeatedly.

        `is_wanted` is True if the caller will `take` transactions. If so, transactions
        that were announced earlier are fetched too.
        """

    def take(self) -> Sequence[AnnouncedTx]:
        """Returns the announced transactions that were not returned before."""

    def replaces(self, new: bytes, old: bytes) -> bool:
        """True if more sources announce the transaction `new` than `old`.

        Both transactions spend the same output. If the result is False, `take` returns
        `new` again as soon as one more source has announced it.
        """
