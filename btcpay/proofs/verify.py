"""Verifies proofs of payment, and the work of headers. Pure.

A proof shows that the transaction with a given txid pays given amounts to our script,
that a block with a given header contains it, and how much work was done on that block.
It cannot show that no other chain has more work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from btcpay.bitcoin.header import Header, parse_header, target_of
from btcpay.bitcoin.merkle import merkle_root_from_branch
from btcpay.bitcoin.tx import Tx, parse_tx
from btcpay.bitcoin.wire import DecodeError, hash_from_hex, hash_to_hex
from btcpay.values.errors import ProofFailed
from btcpay.values.times import from_unix_s

MAX_BRANCH = 24  # more than enough: a block has fewer than 2**17 transactions
# CVE-2017-12842: an inner node of a Merkle tree can be presented as a transaction of this size.
NODE_BYTES = 64


@dataclass(frozen=True)
class Branch:
    """A transaction with its Merkle branch.

    `raw_tx`: the serialized transaction. It may have witnesses; our own proofs omit
    them.
    `position`: the transaction's index in the block.
    `merkle`: the siblings on the path from the transaction to the root of the Merkle
    tree, in reversed hex.
    """

    raw_tx: bytes
    position: int
    merkle: Sequence[str]


@dataclass(frozen=True)
class Evidence:
    """The data of a proof of payment. `prove` verifies it.

    `payment` and `coinbase` are transactions of the same block. `headers` has the
    header of the block and those that follow it, 80 bytes each.
    """

    payment: Branch
    coinbase: Branch
    headers: Sequence[bytes]


@dataclass(frozen=True)
class ProvenPayment:
    """A payment that is proven.

    `amounts_sats` has the satoshis of each output that pays the script, by its index in
    the transaction.
    """

    txid: str
    block_hash: str
    mined_at: datetime
    amounts_sats: Mapping[int, int]


def prove(
    evidence: Evidence,
    txid: str,
    script: bytes,
    max_target_bits: int,
    confirmations: int,
) -> ProvenPayment:
    """Verifies the evidence that the transaction `txid` pays `script`.

    Raises ProofFailed with the first failure. `max_target_bits` is in compact form.

    1. The raw transaction has this txid, is not 64 bytes long, and pays the script.
    2. The Merkle branches of the transaction and the coinbase lead to the root in the
       header, and are equally long.
    3. There are at least `confirmations` headers. Each refers to the one before it,
       meets its own target, and has a target of at most `max_target_bits`.
    """
    try:
        payment = parse_tx(evidence.payment.raw_tx)
        coinbase = parse_tx(evidence.coinbase.raw_tx)
    except DecodeError as error:
        raise ProofFailed(f"the evidence does not decode: {error}") from error
    headers = [check_header(raw, max_target_bits) for raw in evidence.headers]
    require(payment.txid == txid, "the raw transaction has another id")
    require(bool(headers), "there is no header")
    header = headers[0]
    _check_branch(payment, evidence.payment, header, "the transaction")
    _check_coinbase(coinbase, evidence, header)
    require(len(headers) >= confirmations, "fewer headers than confirmations asked for")
    for lower, upper in pairwise(headers):
        follows = upper.previous == lower.hash
        require(follows, "the headers do not follow one another")
    amounts_sats = _amounts_to(script, payment)
    pays_script = any(amounts_sats.values())
    require(pays_script, "the transaction does not pay the invoice's address")
    return ProvenPayment(txid, header.hash, from_unix_s(header.time), amounts_sats)


def _amounts_to(script: bytes, tx: Tx) -> dict[int, int]:
    """Returns the satoshis of each output that pays the script, by the output's index."""
    amounts_sats = {}
    for vout, output in enumerate(tx.outputs):
        if output.script == script:
            amounts_sats[vout] = output.value_sats
    return amounts_sats


def _check_coinbase(coinbase: Tx, evidence: Evidence, header: Header) -> None:
    """Raises ProofFailed if the coinbase is invalid, or its branch has another length.

    The branch of the coinbase shows the depth of the tree. So an inner node cannot be
    presented as the payment.
    """
    require(coinbase.is_coinbase, "the block's first transaction is not a coinbase")
    is_first = evidence.coinbase.position == 0
    require(is_first, "the coinbase is not the first transaction")
    _check_branch(coinbase, evidence.coinbase, header, "the coinbase")
    is_as_deep = len(evidence.payment.merkle) == len(evidence.coinbase.merkle)
    require(is_as_deep, "the branch is not as long as the coinbase's")


def _check_branch(tx: Tx, branch: Branch, header: Header, name: str) -> None:
    """Raises ProofFailed if the branch does not lead from the transaction to the root.

    `name` is what messages call the transaction.
    """
    is_other_size = len(tx.without_witness) != NODE_BYTES
    require(is_other_size, f"{name} is as long as a Merkle node")
    depth = len(branch.merkle)
    require(depth <= MAX_BRANCH, f"the branch of {name} is too long")
    is_in_tree = 0 <= branch.position < 1 << depth
    require(is_in_tree, f"the position of {name} is not in the tree")
    siblings = [hash_from_hex(node) for node in branch.merkle]
    leaf = hash_from_hex(tx.txid)
    root = hash_to_hex(merkle_root_from_branch(leaf, siblings, branch.position))
    is_root = root == header.merkle_root
    require(is_root, f"the branch of {name} does not lead to the header's root")


def check_header(raw: bytes, max_target_bits: int) -> Header:
    """Parses a header, and verifies its work.

    `max_target_bits` is the maximum target in compact form. Raises ProofFailed if the
    header does not have 80 bytes, if it claims a higher target than this maximum, or if
    its hash is above the target that it claims.
    """
    try:
        header = parse_header(raw)
    except DecodeError as error:
        raise ProofFailed(f"the header does not decode: {error}") from error
    is_hard_enough = header.target <= target_of(max_target_bits)
    require(is_hard_enough, "a header claims too little difficulty")
    require(header.has_work, "a header lacks the work that it claims")
    return header


def require(holds: bool, reason: str) -> None:
    """Raises ProofFailed with the reason if `holds` is false."""
    if not holds:
        raise ProofFailed(reason)
