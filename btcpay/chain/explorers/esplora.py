"""One explorer, asked through Esplora's API. All paths of the API stand here.

Source: Blockstream/esplora API.md: /blocks[/:height], /blocks/tip/height, /blocks/tip/hash,
/block-height/:height, /block/:hash/header, /block/:hash/raw, /address/:address/txs[/mempool].
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from math import ceil

from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.wire import hash256, hash_to_hex
from btcpay.chain.explorers.answers import (
    HISTORY,
    ShownHeader,
    count_coins,
    headers_to,
    mempool_page,
)
from btcpay.chain.explorers.endpoint import TEXT, Endpoint
from btcpay.chain.sources import Explorer, Mempool, WrongNetwork
from btcpay.http import http_client
from btcpay.proofs.verify import check_header
from btcpay.values.errors import FetchError
from btcpay.values.networks import Known
from btcpay.values.times import from_unix_s

PAGE = 10  # headers, at least
PAGES_AT_MOST = 2016  # an explorer that shows more is leading us nowhere
_HASH = "[0-9a-f]{64}"
# BIP141: a block weighs four million at most, and no byte of it less than one.
RAW_BLOCK = http_client.Response(bytes, max_bytes=4_000_000)
RAW_BLOCK_TIMEOUT_S = (
    60  # electrs may need seconds to put it together, and a slow line to send it
)


class Esplora(Endpoint, Explorer):
    """One explorer. Its methods raise FetchError, also for answers that no Esplora gives.

    Callers must prove its answers about blocks and payments.
    """

    _is_of_network = False

    def tip_hash(self) -> str:
        return _text(self.read("/blocks/tip/hash", TEXT), _HASH, "block hash")

    def tip_height(self) -> int:
        body = self.read("/blocks/tip/height", TEXT)
        return int(_text(body, "[0-9]{1,8}|100000000", "height"))

    def block_hash(self, height: int) -> str:
        return _text(self.read(f"/block-height/{height}", TEXT), _HASH, "block hash")

    def header(self, hash: str) -> bytes:
        """The 80 bytes that have this hash."""
        body = self.read(f"/block/{hash}/header", TEXT)
        raw = bytes.fromhex(_text(body, "[0-9a-f]{160}", "header"))
        if hash_to_hex(hash256(raw)) != hash:
            raise FetchError("answered another block's header")
        return raw

    def headers(self, height: int | None) -> list[ShownHeader]:
        """Ten or fifteen headers that end at this height, or at its tip; ascending, and linked."""
        path = "/blocks" if height is None else f"/blocks/{height}"
        return self.read(path, headers_to(height))

    def raw_block(self, hash: str) -> bytes:
        return self.read(f"/block/{hash}/raw", RAW_BLOCK, RAW_BLOCK_TIMEOUT_S)

    def require_network(self) -> None:
        """Raises OtherNetwork unless its chain begins with our network's first block."""
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

    def headers_after(self, locator: Sequence[Known]) -> Iterator[list[bytes]]:
        """Its headers above a block of ours: two calls for a new tip, else pages from the fork."""
        top = locator[0]
        hashes = {known.hash for known in locator}
        tip_hash = self.tip_hash()
        if tip_hash == top.hash:
            return
        raw = self.header(tip_hash)
        if tip_hash in hashes or parse_header(raw).previous == top.hash:
            yield [raw]
            return
        tip_height = self.tip_height()
        height = self._fork(locator, tip_height)
        for _ in range(PAGES_AT_MOST):
            page = self.headers(min(height + PAGE, tip_height))
            yield [shown.raw for shown in page if shown.height > height]
            height = page[-1].height
            if height >= tip_height:
                return
        raise FetchError("shows more headers than there can be")

    def _fork(self, locator: Sequence[Known], tip_height: int) -> int:
        """Height of the highest block of ours that it has, too."""
        for known in locator:
            if (
                known.height <= tip_height
                and self.block_hash(known.height) == known.hash
            ):
                return known.height
        raise FetchError(
            f"its chain lacks our block {locator[-1].height}, the first that we keep (when no"
            " explorer has it: `blocktill chain begin-anew`)"
        )

    def headers_before(self, at: datetime, below: int) -> tuple[int, list[bytes]]:
        """Finds it by halves, with some twenty calls on mainnet; once in the life of a shop."""
        self.require_network()
        point = self.network.checkpoint
        if point and self.block_hash(point.height) != point.hash:
            raise WrongNetwork(
                f"shows another block {point.height} than {self.network.name} has"
            )
        tip_height = self.tip_height()

        @cache
        def page(number: int) -> list[ShownHeader]:
            first = number * PAGE
            shown = self.headers(min(first + PAGE - 1, tip_height))
            return [one for one in shown if one.height >= first]

        def is_younger(one: ShownHeader) -> bool:
            return (
                from_unix_s(check_header(one.raw, self.network.max_target_bits).time)
                > at
            )

        numbers = range(tip_height // PAGE + 1)
        after = bisect_left(numbers, True, key=lambda n: is_younger(page(n)[0]))
        pages = range(max(0, after - 1 - ceil(below / PAGE)), max(1, after))
        kept = [one for number in pages for one in page(number)]
        while len(kept) > 1 and is_younger(kept[-1]):
            kept.pop()
        return kept[-1].height, [one.raw for one in kept[-1 - below :]]

    def require_chain(self, known_height: int) -> ShownHeader:
        self.require_network()
        tip = self.headers(None)[-1]
        if tip.height < known_height:
            raise FetchError(
                f"has a chain of {tip.height} blocks, {known_height} were known"
            )
        return tip

    def mempool(self, address: str, script: bytes) -> Mempool:
        mempool = self.read(
            f"/address/{address}/txs/mempool", mempool_page(script), is_look=True
        )
        self.weigh(count_coins(mempool))
        return mempool._replace(host=self.host)

    def is_used(self, address: str) -> bool:
        self.require_network()
        return bool(self.read(f"/address/{address}/txs", HISTORY, is_look=True))


def _text(body: bytes, pattern: str, what: str) -> str:
    """An answer whose whole text matches. Raises FetchError, naming `what`, for any other."""
    text = body.decode("ascii", "replace").strip()
    if not re.fullmatch(pattern, text):
        raise FetchError(f"answered no {what}")
    return text
