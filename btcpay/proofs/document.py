"""A proof as it is kept and shown: JSON that can be checked offline, from itself alone."""

import json
from collections.abc import Sequence
from typing import Any

from btcpay.proofs.verify import Branch, Evidence, Proven, prove
from btcpay.values.errors import CommandError, ProofFailed
from btcpay.values.networks import NETWORKS

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


def extended(document: dict[str, Any], following: Sequence[bytes]) -> dict[str, Any]:
    """A document of one confirmation, with the headers that follow: one more confirmation each."""
    headers = [*document["headers"][:1], *(raw.hex() for raw in following)]
    return document | {"headers": headers, "confirmations": len(headers)}


def check_document(document: Any) -> Proven:
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
        script, confirmations = bytes.fromhex(document["script"]), _whole(document["confirmations"])
        txid = str(document["txid"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CommandError(f"this is not a payment proof: {error}") from error
    if confirmations < 1:
        raise ProofFailed("at least one confirmation must be proved")
    return prove(evidence, txid, script, network.max_target_bits, confirmations)


def load(text: bytes) -> list[Any]:
    """The documents in a file: one, or a list of them. Raises CommandError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError("this is not a file of `btcpay invoice show ID --proof`") from error
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
    return Branch(bytes.fromhex(document["raw_tx"]), _whole(document["position"]), siblings)
