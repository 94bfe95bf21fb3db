"""Proofs of payment, and of a header's work, checked against Bitcoin's own commitments. Pure.

It proves that a transaction of this id pays our script these amounts, that it is in the block of
this header, and that so much work was done on that block. It cannot prove that no other chain has
more work. Proofs are kept and shown as JSON that can be checked offline, from itself alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from btcpay.bitcoin.header import (
    Header,
    merkle_root_from_branch,
    parse_header,
    target_of,
)
from btcpay.bitcoin.tx import Tx, parse_tx
from btcpay.bitcoin.wire import DecodeError, hash_from_hex, hash_to_hex
from btcpay.values.errors import CommandError, ProofFailed
from btcpay.values.networks import NETWORKS
from btcpay.values.times import from_unix_s

MAX_BRANCH = 24  # a block of 4 million weight units has fewer than 2**17 transactions
NODE_BYTES = (
    64  # CVE-2017-12842: a transaction of this size can pose as an inner Merkle node
)


@dataclass(frozen=True)
class Branch:
    """A raw transaction, its position in the block, and its siblings in reversed hex, leaves first.

    We make it without witness; one with a witness proves the same.
    """

    raw_tx: bytes
    position: int
    merkle: Sequence[str]


@dataclass(frozen=True)
class Evidence:
    """The data that is to prove one transaction; none of it is believed.

    `headers`: the block's, and those that follow it, 80 bytes each.
    """

    payment: Branch
    coinbase: Branch
    headers: Sequence[bytes]


@dataclass(frozen=True)
class ProvenPayment:
    """Facts that the evidence proves. `amounts_sats`: by output index, to the script asked for."""

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
    """Checks the evidence that `txid` pays `script`. Raises ProofFailed with the first flaw.

    1. The raw transaction hashes to its id, is not as long as a Merkle node, and pays the script.
    2. Its branch and the coinbase's lead to the root in the header and are equally long.
    3. There are at least `confirmations` headers, each of which names the one before it, has the
       work that it claims, and claims no easier target than `max_target_bits` (compact).
    """
    try:
        payment = parse_tx(evidence.payment.raw_tx)
        coinbase = parse_tx(evidence.coinbase.raw_tx)
    except DecodeError as error:
        raise ProofFailed(f"the evidence does not decode: {error}") from error
    headers = [check_header(raw, max_target_bits) for raw in evidence.headers]
    require(payment.txid == txid, "the raw transaction has another id")
    require(bool(headers), "there is no header")
    _check_branch(payment, evidence.payment, headers[0], "the transaction")
    require(coinbase.is_coinbase, "the block's first transaction is not a coinbase")
    require(
        evidence.coinbase.position == 0, "the coinbase is not the first transaction"
    )
    _check_branch(coinbase, evidence.coinbase, headers[0], "the coinbase")
    require(
        len(evidence.payment.merkle) == len(evidence.coinbase.merkle),
        "the branch is not as long as the coinbase's",
    )
    require(len(headers) >= confirmations, "fewer headers than confirmations asked for")
    for before, after in pairwise(headers):
        require(after.previous == before.hash, "the headers do not follow one another")
    amounts_sats = {
        vout: output.value_sats
        for vout, output in enumerate(payment.outputs)
        if output.script == script
    }
    require(
        any(amounts_sats.values()), "the transaction does not pay the invoice's address"
    )
    return ProvenPayment(
        txid, headers[0].hash, from_unix_s(headers[0].time), amounts_sats
    )


def _check_branch(tx: Tx, branch: Branch, header: Header, name: str) -> None:
    require(
        len(tx.without_witness) != NODE_BYTES, f"{name} is as long as a Merkle node"
    )
    require(len(branch.merkle) <= MAX_BRANCH, f"the branch of {name} is too long")
    require(
        0 <= branch.position < 1 << len(branch.merkle),
        f"the position of {name} is not in the tree",
    )
    siblings = [hash_from_hex(node) for node in branch.merkle]
    root = hash_to_hex(
        merkle_root_from_branch(hash_from_hex(tx.txid), siblings, branch.position)
    )
    require(
        root == header.merkle_root,
        f"the branch of {name} does not lead to the header's root",
    )


def check_header(raw: bytes, max_target_bits: int) -> Header:
    """The header, checked by itself: its work is done, and hard enough. Raises ProofFailed."""
    try:
        header = parse_header(raw)
    except DecodeError as error:
        raise ProofFailed(f"the header does not decode: {error}") from error
    require(
        header.target <= target_of(max_target_bits),
        "a header claims too little difficulty",
    )
    require(header.has_work, "a header lacks the work that it claims")
    return header


def require(holds: bool, reason: str) -> None:
    """Raises ProofFailed unless it holds."""
    if not holds:
        raise ProofFailed(reason)


FORMAT = "btcpay payment proof 1"


def to_document(
    evidence: Evidence, txid: str, script: bytes, network: str, confirmations: int
) -> dict[str, Any]:
    """The evidence, and the statement that it proves; hashes in reversed hex, all else in hex."""
    return {
        "format": FORMAT,
        "network": network,
        "txid": txid,
        "script": script.hex(),
        "confirmations": confirmations,
        "payment": _branch_document(evidence.payment),
        "coinbase": _branch_document(evidence.coinbase),
        "headers": [raw.hex() for raw in evidence.headers],
    }


def extend_document(
    document: dict[str, Any], following: Sequence[bytes]
) -> dict[str, Any]:
    """A document of one confirmation, with the headers that follow: one more confirmation each."""
    headers = [*document["headers"][:1], *(raw.hex() for raw in following)]
    return document | {"headers": headers, "confirmations": len(headers)}


def check_document(document: Any) -> ProvenPayment:
    """Checks the proof again. Raises ProofFailed, or CommandError for any other document."""
    try:
        if document["format"] != FORMAT:
            raise CommandError(f"this is no {FORMAT!r}")
        evidence = Evidence(
            _branch_of(document["payment"]),
            _branch_of(document["coinbase"]),
            [bytes.fromhex(raw) for raw in document["headers"]],
        )
        network = NETWORKS[document["network"]]
        script = bytes.fromhex(document["script"])
        confirmations = _whole(document["confirmations"])
        txid = str(document["txid"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CommandError(f"this is not a payment proof: {error}") from error
    require(confirmations >= 1, "at least one confirmation must be proved")
    require(len(evidence.headers) <= confirmations, "more headers than confirmations")
    return prove(evidence, txid, script, network.max_target_bits, confirmations)


def load(text: bytes) -> list[Any]:
    """The documents in a file: one, or a list of them. Raises CommandError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(
            "this is not a file of `blocktill invoice show ID --proof`"
        ) from error
    documents = value if isinstance(value, list) else [value]
    if not documents:
        raise CommandError("there is no proof in this file")
    return documents


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _branch_document(branch: Branch) -> dict[str, Any]:
    return {
        "raw_tx": branch.raw_tx.hex(),
        "position": branch.position,
        "merkle": list(branch.merkle),
    }


def _branch_of(document: Any) -> Branch:
    siblings = [bytes.fromhex(node).hex() for node in document["merkle"]]
    if any(len(node) != 64 for node in siblings):
        raise ValueError("a Merkle node is not 32 bytes")
    return Branch(
        bytes.fromhex(document["raw_tx"]), _whole(document["position"]), siblings
    )
