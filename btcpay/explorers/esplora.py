"""What one explorer says of the chain, in Esplora's API. The paths stand here and in `history`.

Source: Blockstream/esplora API.md: /blocks/tip/height, /block-height/:height, /block/:hash/header,
/block/:hash/txid/:index, /tx/:txid/hex, /tx/:txid/merkle-proof, /address/:address/txs.
"""

import re
from collections.abc import Callable
from typing import Any

import requests
from marshmallow import ValidationError

from btcpay import http_client
from btcpay.bitcoin.outline import outline
from btcpay.bitcoin.wire import Malformed
from btcpay.errors import ProofFailed
from btcpay.explorers.calls import proof_calls
from btcpay.explorers.endpoint import TEXT, Endpoint
from btcpay.explorers.history import page_for, read_outputs
from btcpay.explorers.quota import Quota
from btcpay.networks import Network
from btcpay.settlement.values import Block, SeenOutput
from btcpay.spv.verify import Branch, Evidence, prove_block
from schemas.esplora import MerkleProof

_HASH = "[0-9a-f]{64}"
_MERKLE_PROOF = MerkleProof()


class OtherNetwork(http_client.FetchError):
    """The explorer shows the chain of another network."""


def _stripped(body: bytes) -> bytes:
    """The transaction without witness: its id commits to none, so that anything may be in it."""
    try:
        raw = bytes.fromhex(body.decode("ascii"))
    except ValueError as error:
        raise http_client.FetchError("answered no raw transaction") from error
    try:
        return outline(raw).stripped
    except Malformed as error:
        raise ProofFailed(f"the evidence does not decode: {error}") from error


# A block's weight limit in hex digits, and a line's end.
_RAW_TX = http_client.Wanted(_stripped, max_bytes=8_000_002)


class Esplora(Endpoint):
    """One explorer. Its methods raise FetchError; ValidationError for what Esplora never answers.

    Nothing is believed: what is said of blocks and payments has to be proven by whoever asks.
    """

    def __init__(
        self,
        network: Network,
        url: str,
        session: requests.Session,
        quota: Quota | None,
        hear: http_client.Hear,
        turn: http_client.Turn | None = None,
    ) -> None:
        super().__init__(url, session, quota, hear, turn)
        self.network = network
        self._is_of_network = False

    def tip(self) -> int:
        """Height of its best block."""
        body = self.read("/blocks/tip/height", TEXT)
        return int(_text(body, "[0-9]{1,8}|100000000", "height"))

    def block_hash(self, height: int) -> str:
        """Hash of its block at this height."""
        return _text(self.read(f"/block-height/{height}", TEXT), _HASH, "block hash")

    def header(self, hash: str) -> bytes:
        """The 80 bytes that it shows for this hash; unchecked. Asked for once in a run."""
        body = self.read_once(f"/block/{hash}/header", TEXT)
        return bytes.fromhex(_text(body, "[0-9a-f]{160}", "header"))

    def require_network(self) -> None:
        """Raises OtherNetwork unless its chain begins with our network's first block."""
        if self._is_of_network:
            return
        genesis_hash = self.block_hash(0)
        if genesis_hash != self.network.genesis_hash:
            name = self.network.name
            raise OtherNetwork(f"shows another network than {name}: it begins {genesis_hash}")
        self._is_of_network = True

    def history(self, address: str, script: bytes) -> list[SeenOutput]:
        """Every output that ever paid `script`, the address's scriptPubKey, spent or not."""
        return read_outputs(self, address, script)

    def is_used(self, address: str) -> bool:
        """Whether any transaction, an unconfirmed one too, has paid or spent from the address."""
        return bool(self.read(f"/address/{address}/txs", page_for("")))

    def evidence(self, txid: str, block: Block, confirmations: int) -> Evidence:
        """The evidence that `txid` is in `block`, with as many headers as `confirmations`.

        Costs `proof_calls`, and two calls for another payment of the same block. Begins only when
        the calls are there to finish: else raises TooFewCalls.
        """
        with self.set_aside(proof_calls(confirmations)):
            following = range(block.height + 1, block.height + confirmations)
            hashes = [block.hash] + [self.block_hash(height) for height in following]
            return Evidence(
                payment=_branch(self.read, txid),
                coinbase=self._coinbase(block.hash),
                headers=[self.header(hash) for hash in hashes],
            )

    def prove_block(self, hash: str, height: int) -> None:
        """Raises ProofFailed unless a block of this hash and height, with real work, is shown.

        Four calls at most.
        """
        coinbase, header = self._coinbase(hash), self.header(hash)
        prove_block(coinbase, header, hash, height, self.network.max_target_bits)

    def _coinbase(self, hash: str) -> Branch:
        # Asked for once in a run, for all payments of the block.
        body = self.read_once(f"/block/{hash}/txid/0", TEXT)
        return _branch(self.read_once, _text(body, _HASH, "coinbase"))


def _branch(read: Callable[[str, http_client.Wanted[Any]], Any], txid: str) -> Branch:
    raw = read(f"/tx/{txid}/hex", _RAW_TX)
    body = read(f"/tx/{txid}/merkle-proof", TEXT)
    answer = _MERKLE_PROOF.load(http_client.parse_json(body))
    return Branch(raw, answer["pos"], answer["merkle"])


def _text(body: bytes, pattern: str, what: str) -> str:
    """A plain text answer that fully matches. Raises FetchError, naming `what`, for any other."""
    text = body.decode("ascii", "replace").strip()
    if not re.fullmatch(pattern, text):
        raise http_client.FetchError(f"answered no {what}")
    return text


def brief(error: Exception) -> str:
    """What was wrong with an answer, in one line."""
    if isinstance(error, ValidationError):
        return f"answered what Esplora does not: {str(error.messages)[:200]}"
    return str(error)
