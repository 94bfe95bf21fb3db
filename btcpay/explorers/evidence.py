"""Gathers an explorer's evidence for a payment or a block; believes nothing.

Source: Blockstream/esplora API.md: /tx/:txid/hex, /tx/:txid/merkle-proof, /block/:hash/header,
/block/:hash/txid/:index, /block-height/:height.
"""

from collections.abc import Callable
from typing import Any

from btcpay import http_client
from btcpay.bitcoin.outline import outline
from btcpay.bitcoin.wire import Malformed
from btcpay.errors import ProofFailed
from btcpay.explorers.endpoint import TEXT, Root
from btcpay.explorers.history import Get
from btcpay.explorers.pool import get_text
from btcpay.networks import Network
from btcpay.settlement.values import Block
from btcpay.spv.verify import Branch, Evidence, prove_block
from schemas.esplora import MerkleProof

_HASH = "[0-9a-f]{64}"
_MERKLE_PROOF = MerkleProof()


class OtherNetwork(http_client.FetchError):
    """The root shows the chain of another network."""


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


def gather(root: Root, txid: str, block: Block, confirmations: int) -> Evidence:
    """The evidence that `txid` is in `block`, with as many headers as confirmations asked for.

    Six calls, and two for each further header; two for another payment of the same block. Raises
    FetchError, or ValidationError for an answer of another form.
    """
    hashes = [block.hash] + [
        block_hash(root, height) for height in range(block.height + 1, block.height + confirmations)
    ]
    return Evidence(
        payment=_branch(root.read, txid),
        coinbase=_coinbase(root, block.hash),
        headers=[header(root.keep, hash) for hash in hashes],
    )


def proof_calls(confirmations: int) -> int:
    """How many calls `gather` makes at most."""
    return 6 + 2 * (confirmations - 1)


def prove_at(root: Root, hash: str, height: int, network: Network) -> None:
    """Raises ProofFailed or FetchError unless a block of this hash, height and work is shown.

    Four calls at most.
    """
    coinbase, shown = _coinbase(root, hash), header(root.keep, hash)
    prove_block(coinbase, shown, hash, height, network.max_target_bits)


def block_hash(get: Get, height: int) -> str:
    """Hash of the root's block at this height. Raises FetchError."""
    return get_text(get, f"/block-height/{height}", _HASH, "block hash")


def require_network(get: Get, network: Network) -> None:
    """Raises OtherNetwork unless the chain begins with the network's first block; FetchError."""
    genesis_hash = block_hash(get, 0)
    if genesis_hash != network.genesis_hash:
        raise OtherNetwork(f"shows another network than {network.name}: it begins {genesis_hash}")


def header(get: Get, hash: str) -> bytes:
    """The 80 bytes that the root shows for this hash; unchecked. Raises FetchError."""
    return bytes.fromhex(get_text(get, f"/block/{hash}/header", "[0-9a-f]{160}", "header"))


def _coinbase(root: Root, hash: str) -> Branch:
    # What a block's hash commits to is asked for once in a run, for all its payments.
    txid = get_text(root.keep, f"/block/{hash}/txid/0", _HASH, "coinbase")
    return _branch(root.keep, txid)


def _branch(read: Callable[[str, http_client.Wanted[Any]], Any], txid: str) -> Branch:
    raw = read(f"/tx/{txid}/hex", _RAW_TX)
    body = read(f"/tx/{txid}/merkle-proof", TEXT)
    answer = _MERKLE_PROOF.load(http_client.parse_json(body))
    return Branch(raw, answer["pos"], answer["merkle"])
