"""What one explorer says of the chain, in Esplora's API. All paths stand here.

Source: Blockstream/esplora API.md: /blocks[/:height], /blocks/tip/height, /blocks/tip/hash,
/block-height/:height, /block/:hash/header, /block/:hash/raw, /address/:address/txs[/mempool].
"""

import re

from btcpay.bitcoin.wire import hash256, txid_hex
from btcpay.chain.explorers.endpoint import TEXT, Endpoint
from btcpay.chain.explorers.headers import ShownHeader, headers_to
from btcpay.chain.explorers.mempool import Mempool, mempool_page, parts_in, transactions_page
from btcpay.chain.explorers.quota import Quota
from btcpay.http import http_client
from btcpay.values.errors import FetchError
from btcpay.values.networks import Network

_HASH = "[0-9a-f]{64}"
# BIP141: a block weighs four million at most, and no byte of it less than one.
RAW_BLOCK = http_client.Response(bytes, max_bytes=4_000_000)
RAW_BLOCK_TIMEOUT_S = 60  # electrs may need seconds to put it together, and a slow line to send it


class OtherNetwork(FetchError):
    """The explorer shows the chain of another network."""


class Esplora(Endpoint):
    """One explorer. Its methods raise FetchError, also for what Esplora never answers.

    Nothing is believed: what is said of blocks and payments has to be proven by whoever asks.
    """

    def __init__(
        self,
        network: Network,
        url: str,
        session: http_client.Session,
        quota: Quota | None,
        on_headers: http_client.OnHeaders,
        turn: http_client.Turn | None = None,
    ) -> None:
        super().__init__(url, session, quota, on_headers, turn)
        self.network = network
        self._is_of_network = False

    # The chain.

    def tip_hash(self) -> str:
        """Hash of its best block."""
        return _text(self.read("/blocks/tip/hash", TEXT), _HASH, "block hash")

    def tip_height(self) -> int:
        """Height of its best block."""
        body = self.read("/blocks/tip/height", TEXT)
        return int(_text(body, "[0-9]{1,8}|100000000", "height"))

    def block_hash(self, height: int) -> str:
        """Hash of its block at this height."""
        return _text(self.read(f"/block-height/{height}", TEXT), _HASH, "block hash")

    def header(self, hash: str) -> bytes:
        """The 80 bytes that have this hash."""
        raw = bytes.fromhex(
            _text(self.read(f"/block/{hash}/header", TEXT), "[0-9a-f]{160}", "header")
        )
        if txid_hex(hash256(raw)) != hash:
            raise FetchError("answered another block's header")
        return raw

    def headers(self, height: int | None) -> list[ShownHeader]:
        """Some headers up to this height, or up to its tip when None; ascending, and linked.

        Servers show ten or fifteen. The last one has the height that was asked for.
        """
        path = "/blocks" if height is None else f"/blocks/{height}"
        return self.read(path, headers_to(height))

    def raw_block(self, hash: str) -> bytes:
        """The whole block that it shows for this hash; unchecked, 4,000,000 bytes at most."""
        return self.read(f"/block/{hash}/raw", RAW_BLOCK, RAW_BLOCK_TIMEOUT_S)

    def require_network(self) -> None:
        """Raises OtherNetwork unless its chain begins with our network's first block."""
        if self._is_of_network:
            return
        genesis_hash = self.block_hash(0)
        if genesis_hash != self.network.genesis_hash:
            name = self.network.name
            raise OtherNetwork(f"shows another network than {name}: it begins {genesis_hash}")
        self._is_of_network = True

    # Addresses.

    def waiting(self, address: str, script: bytes) -> Mempool:
        """What waits in its mempool and pays `script`, the address's scriptPubKey."""
        mempool = self.read(f"/address/{address}/txs/mempool", mempool_page(script))
        self.weigh(parts_in(mempool))
        return mempool

    def is_used(self, address: str) -> bool:
        """Whether any transaction, an unconfirmed one too, has paid or spent from the address."""
        return bool(self.read(f"/address/{address}/txs", transactions_page()))


def _text(body: bytes, pattern: str, what: str) -> str:
    """A plain text answer that fully matches. Raises FetchError, naming `what`, for any other."""
    text = body.decode("ascii", "replace").strip()
    if not re.fullmatch(pattern, text):
        raise FetchError(f"answered no {what}")
    return text
