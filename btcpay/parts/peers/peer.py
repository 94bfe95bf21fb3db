"""A Bitcoin node as a source of blocks: it serves headers by locator, and blocks by hash."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cached_property

from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.wire import hash_from_hex
from btcpay.chain.sources import FAILURES, MAX_BLOCKS_BEHIND, BlockSource, BudgetSpent
from btcpay.parts.peers import messages
from btcpay.parts.peers.connection import Connection, Message, decode
from btcpay.proofs.verify import check_header
from btcpay.values.errors import FetchError, ProofFailed, Unreachable
from btcpay.values.networks import BlockId, Network
from btcpay.values.times import from_unix_s

ANSWER_TIMEOUT_S = 20.0
BLOCK_TIMEOUT_S = 60.0
MOST_CHAIN_S = 60.0  # in one run, for all requests
MAX_MESSAGES = 100  # of 2,000 headers each: nearly four years


class Peer(BlockSource):
    """A Bitcoin node. The first request of a run connects to the node.

    Only one request at a time is sent to the node.

    - `host`: the node's host and port (host:port).
    - `shown_height`: the height of the last header that the node has sent; None before
      it has sent one.
    - `until_s`: the time of `time.monotonic()` at which the node's time in this run ends.
    - `has_failed`: becomes True if a request fails before the time `until_s`.
    - `on_time`: a function that is called at each handshake with the time of the node's
      clock, in unix seconds.
    """

    def __init__(
        self,
        network: Network,
        place: str,
        on_time: Callable[[int], None],
        proxy: str = "",
    ) -> None:
        self.network = network
        self.host = place
        self._proxy = proxy
        self.has_answered = False
        self.has_failed = False
        self.shown_height: int | None = None
        self.calls = 0
        self.bytes_read = 0
        self.until_s = math.inf
        self._on_time = on_time
        self._connection: Connection | None = None
        self._spent_s = 0.0
        self._question_lock = threading.Lock()

    def tip_height(self) -> int:
        """Returns the height of the last header that the peer has sent.

        The height in the peer's version message is not used, as it proves nothing.
        Raises FetchError if the peer has sent no headers.
        """
        if self.shown_height is None:
            raise FetchError("has shown no headers")
        return self.shown_height

    def headers_after(self, locator: Sequence[BlockId]) -> Iterator[list[bytes]]:
        """Yields pages of the headers that follow a block slightly below our tip.

        `locator` has blocks of our chain, the highest first. Its first
        MAX_BLOCKS_BEHIND + 1 blocks are left out, so that a peer with our tip sends their
        headers. Raises FetchError if the peer sends no header, because it is too far
        behind, or if it has none of the other blocks.

        If `locator` has no other blocks, the headers follow its last block. Then a peer
        may send no header.
        """
        below_tip = locator[MAX_BLOCKS_BEHIND + 1 :]
        start = below_tip or locator[-1:]
        height = None
        for raws in self._pages([block.hash for block in start]):
            if height is None:
                height = _height_below(raws[0], locator)
            yield raws
            height += len(raws)
            self.shown_height = height
        if height is None and below_tip:
            raise FetchError(f"shows none of our last {MAX_BLOCKS_BEHIND + 1} blocks")

    def headers_before(self, at: datetime, below: int) -> tuple[int, list[bytes]]:
        """Returns the last header whose time is not after `at`, and headers below it.

        The result is that header's height, and a list of up to `below` + 1 headers in
        ascending order, which ends with that header. If the times of all headers are
        after `at`, that header is the first known one. This method downloads all headers
        since the checkpoint, since peers cannot search by time.
        """
        first_height, headers = self._all_headers
        index = len(headers) - 1
        while index and from_unix_s(parse_header(headers[index]).time) > at:
            index -= 1
        start = max(0, index - below)
        return first_height + index, headers[start : index + 1]

    def header_at(self, height: int) -> bytes:
        first_height, headers = self._all_headers
        index = height - first_height
        if not 0 <= index < len(headers):
            raise FetchError(
                f"shows no block {height}: its headers are walked from {first_height} on"
            )
        return headers[index]

    def raw_block(self, hash: str) -> bytes:
        question = messages.getdata_body(messages.WITNESS_BLOCK, [hash_from_hex(hash)])
        answers = ("block", "notfound")
        command, body = self._ask("getdata", question, answers, BLOCK_TIMEOUT_S)
        if command == "notfound":
            raise FetchError(f"does not have block {hash}")
        return body

    @property
    def has_wasted_its_time(self) -> bool:
        """True if the peer has used up its time in this run without any response."""
        return not self.has_answered and self._spent_s >= MOST_CHAIN_S

    def close(self) -> None:
        """Closes the connection. If another thread waits for a response, this ends its wait."""
        self.until_s = 0.0
        self._hang_up()

    @cached_property
    def _all_headers(self) -> tuple[int, list[bytes]]:
        """The checkpoint's height (or 0), and all headers from there to the peer's tip.

        Raises FetchError if the peer lacks the checkpoint's block, ProofFailed if the
        headers are not linked or lack proof of work.
        """
        start = self.network.checkpoint or BlockId(0, self.network.genesis_hash)
        headers = self._headers([], start.hash)[:1]
        if not headers or parse_header(headers[0]).hash != start.hash:
            raise FetchError(
                f"does not have block {start.height} of {self.network.name}"
            )
        last_hash = start.hash
        for raws in self._pages([start.hash]):
            for raw in raws:
                header = check_header(raw, self.network.max_target_bits)
                if header.previous != last_hash:
                    raise ProofFailed("shows headers that do not form a chain")
                last_hash = header.hash
            headers += raws
        self.shown_height = start.height + len(headers) - 1
        return start.height, headers

    def _pages(self, locator: Sequence[str]) -> Iterator[list[bytes]]:
        """Yields pages of headers that follow the locator, up to the peer's tip.

        Yields no empty page. Raises ProofFailed if a page does not continue the
        previous one. Raises FetchError after MAX_MESSAGES pages.
        """
        last_hash = ""
        for _ in range(MAX_MESSAGES):
            raws = self._headers(locator)
            if raws:
                first = parse_header(raws[0])
                if last_hash and first.previous != last_hash:
                    raise ProofFailed("shows headers that do not form a chain")
                yield raws
            if len(raws) < messages.MAX_HEADERS:
                return  # the last header is that of the peer's tip
            last_hash = parse_header(raws[-1]).hash
            locator = [last_hash]
        raise FetchError("shows more headers than there can be")

    def _headers(
        self,
        locator: Sequence[str],
        stop: str = messages.NO_HASH,
    ) -> list[bytes]:
        question = messages.getheaders_body(locator, stop)
        _, body = self._ask("getheaders", question, ("headers",), ANSWER_TIMEOUT_S)
        return decode(messages.parse_headers, body)

    def _ask(
        self,
        command: str,
        body: bytes,
        replies: Sequence[str],
        timeout_s: float,
    ) -> Message:
        """Sends a message, and returns the next one whose command is in `replies`.

        Raises BudgetSpent if no time is left in this run, another FetchError if the peer
        does not reply in time, and ProofFailed for malformed data.
        """
        began_s = time.monotonic()
        if not self._question_lock.acquire(timeout=timeout_s):
            raise Unreachable("is still busy with another question")
        try:
            run_left_s = self.until_s - time.monotonic()
            left_s = min(run_left_s, MOST_CHAIN_S - self._spent_s)
            if left_s <= 0:
                raise BudgetSpent("has used up its time in this run")
            self.calls += 1
            connection = self._open_connection()
            connection.send(command, body)
            answer = connection.next(replies, min(timeout_s, left_s))
            self.has_answered = True
            return answer
        except FAILURES:
            if time.monotonic() < self.until_s:
                self.has_failed = True
            # A late response to this request must not be taken for that to the next one.
            self._hang_up()
            raise
        finally:
            self._spent_s += time.monotonic() - began_s
            self._question_lock.release()

    def _open_connection(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(
                self.network,
                self.host,
                self._count_bytes,
                proxy=self._proxy,
            )
            self._on_time(self._connection.greeting.time)
        return self._connection

    def _hang_up(self) -> None:
        """Closes the connection, if there is one. The next request opens a new one."""
        connection = self._connection
        self._connection = None
        if connection:
            connection.close()

    def _count_bytes(self, size: int) -> None:
        self.bytes_read += size


def _height_below(raw: bytes, locator: Sequence[BlockId]) -> int:
    """Returns the height of the block of `locator` that this header follows.

    Raises FetchError if it follows none of them: then the peer's chain is another one.
    """
    previous = parse_header(raw).previous
    for block in locator:
        if block.hash == previous:
            return block.height
    raise FetchError(
        f"its chain lacks our block {locator[-1].height}, the first that we keep"
        " (when nobody has it: `blocktill chain begin-anew`)"
    )
