"""A client of the Esplora API. All paths of the API are in this module and history.py.

Source: Blockstream/esplora API.md: /blocks[/:height], /blocks/tip/height,
/blocks/tip/hash, /block-height/:height, /block/:hash/header, /block/:hash/raw,
/address/:address/txs[/mempool].
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.wire import hash256, hash_to_hex
from btcpay.chain.explorers import history
from btcpay.chain.explorers.answers import (
    HISTORY,
    ShownHeader,
    coins_in,
    headers_to,
    mempool_page,
)
from btcpay.chain.explorers.endpoint import TEXT, Endpoint
from btcpay.chain.explorers.header_search import PAGE, HeaderSearch
from btcpay.chain.sources import Explorer, Mempool, WrongNetwork
from btcpay.http import http_client
from btcpay.values.errors import FetchError
from btcpay.values.networks import BlockId

MAX_PAGES = 2016  # no honest explorer needs more pages in a run
_HASH = "[0-9a-f]{64}"
# BIP141: the maximum weight of a block is four million, and each byte weighs at least 1.
RAW_BLOCK = http_client.Response(bytes, max_bytes=4_000_000)
# electrs may take seconds to assemble a block, and a slow network to send it.
RAW_BLOCK_TIMEOUT_S = 60


class Esplora(Endpoint, Explorer):
    """One explorer with the Esplora API.

    Its methods raise FetchError if a request fails, or if the response is malformed.
    Callers must verify its data about blocks and payments.
    """

    _is_of_network = False

    def tip_hash(self) -> str:
        return _text(self.fetch("/blocks/tip/hash", TEXT), _HASH, "block hash")

    def tip_height(self) -> int:
        body = self.fetch("/blocks/tip/height", TEXT)
        return int(_text(body, "[0-9]{1,8}|100000000", "height"))

    def block_hash(self, height: int) -> str:
        return _text(self.fetch(f"/block-height/{height}", TEXT), _HASH, "block hash")

    def header(self, hash: str) -> bytes:
        """Returns the header (80 bytes) with this hash.

        Raises FetchError if the explorer sends another header.
        """
        body = self.fetch(f"/block/{hash}/header", TEXT)
        raw = bytes.fromhex(_text(body, "[0-9a-f]{160}", "header"))
        if hash_to_hex(hash256(raw)) != hash:
            raise FetchError("answered another block's header")
        return raw

    def headers(self, height: int | None) -> list[ShownHeader]:
        """Returns a page of ten or fifteen linked headers in ascending order.

        The last one is at `height`, or is the tip if `height` is None.
        """
        path = "/blocks"
        if height is not None:
            path = f"/blocks/{height}"
        return self.fetch(path, headers_to(height))

    def raw_block(self, hash: str) -> bytes:
        return self.fetch(f"/block/{hash}/raw", RAW_BLOCK, RAW_BLOCK_TIMEOUT_S)

    def require_network(self) -> None:
        """Raises WrongNetwork if the explorer shows another network's genesis block."""
        if self._is_of_network:
            return
        genesis_hash = self.block_hash(0)
        if genesis_hash != self.network.genesis_hash:
            name = self.network.name
            raise WrongNetwork(
                f"shows another network than {name}: it begins {genesis_hash}"
            )
        self._is_of_network = True

    def header_at(self, height: int) -> bytes:
        return self.headers(height)[-1].raw

    def headers_after(self, locator: Sequence[BlockId]) -> Iterator[list[bytes]]:
        """Yields lists of headers above a block that we have stored, up to the tip.

        `locator` has blocks that we have stored, from the newest to the first, with
        gaps. A single new block takes two calls. More blocks are fetched in pages, from
        the fork to the tip.
        """
        top = locator[0]
        our_hashes = {block.hash for block in locator}
        tip_hash = self.tip_hash()
        if tip_hash == top.hash:
            return
        tip_header = self.header(tip_hash)
        if tip_hash in our_hashes or parse_header(tip_header).previous == top.hash:
            yield [tip_header]
            return
        tip_height = self.tip_height()
        height = self._fork_height(locator, tip_height)
        for _ in range(MAX_PAGES):
            page = self.headers(min(height + PAGE, tip_height))
            yield [header.raw for header in page if header.height > height]
            height = page[-1].height
            if height >= tip_height:
                return
        raise FetchError("shows more headers than there can be")

    def _fork_height(self, locator: Sequence[BlockId], tip_height: int) -> int:
        """Returns the height of the highest block in `locator` that the explorer has.

        Raises FetchError if it has none of them.
        """
        for known in locator:
            if known.height > tip_height:
                continue
            if self.block_hash(known.height) == known.hash:
                return known.height
        raise FetchError(
            f"its chain lacks our block {locator[-1].height}, the first that we keep (when no"
            " explorer has it: `blocktill chain begin-anew`)"
        )

    def headers_before(self, at: datetime, below: int) -> tuple[int, list[bytes]]:
        """Returns the last header whose time is not after `at`, and headers below it.

        The result is that header's height, and a list of up to `below` + 1 headers in
        ascending order, which ends with that header. The binary search takes about
        twenty calls on mainnet. Each shop needs it once.
        """
        self.require_network()
        self._require_checkpoint()
        tip_height = self.tip_height()
        search = HeaderSearch(self.headers, tip_height, self.network.max_target_bits)
        return search.headers_before(at, below)

    def _require_checkpoint(self) -> None:
        point = self.network.checkpoint
        if point and self.block_hash(point.height) != point.hash:
            raise WrongNetwork(
                f"shows another block {point.height} than {self.network.name} has"
            )

    def require_chain(self, known_height: int) -> ShownHeader:
        self.require_network()
        tip = self.headers(None)[-1]
        if tip.height < known_height:
            raise FetchError(
                f"has a chain of {tip.height} blocks, {known_height} were known"
            )
        return tip

    def mempool(self, address: str, script: bytes) -> Mempool:
        mempool = self._look_for(address, script)
        self.count_coins(coins_in(mempool.outputs))
        return mempool._replace(host=self.host)

    def _look_for(self, address: str, script: bytes) -> Mempool:
        """Returns the unconfirmed outputs that pay the address.

        If the explorer lacks the path of the mempool, its list of the address's
        transactions is searched instead. A missing path never means that there are no
        outputs.
        """
        if history.lacks_mempool(self._quota, self.name):
            return self._search_history(address, script)
        path = f"/address/{address}/txs/mempool"
        try:
            return self.fetch(path, mempool_page(script), is_look=True)
        except FetchError as error:
            is_path_missing = history.is_missing(error)
            if not is_path_missing:
                raise
        mempool = history.search_history(self, address, script)
        history.note_lack(self._quota, self.name)
        return mempool

    def _search_history(self, address: str, script: bytes) -> Mempool:
        """Searches the list of the address's transactions for unconfirmed outputs.

        If the path of this list is missing too, the next look-up tries the path of the
        mempool again.
        """
        try:
            return history.search_history(self, address, script)
        except FetchError as error:
            if history.is_missing(error):
                history.forget_lack(self._quota, self.name)
            raise

    def is_used(self, address: str) -> bool:
        self.require_network()
        return bool(self.fetch(f"/address/{address}/txs", HISTORY, is_look=True))


def _text(body: bytes, pattern: str, what: str) -> str:
    """Returns the response body as text, if it matches the pattern as a whole.

    Raises FetchError with the name `what` if it does not.
    """
    text = body.decode("ascii", "replace").strip()
    if not re.fullmatch(pattern, text):
        raise FetchError(f"answered no {what}")
    return text
