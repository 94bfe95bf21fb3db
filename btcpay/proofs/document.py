"""Proofs of payment as JSON documents, which can be verified offline."""

import json
from collections.abc import Sequence
from typing import Any

from btcpay.proofs.verify import Branch, Evidence, ProvenPayment, prove, require
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS

FORMAT = "btcpay payment proof 1"


def to_document(
    evidence: Evidence,
    txid: str,
    script: bytes,
    network: str,
    confirmations: int,
) -> dict[str, Any]:
    """Returns a proof as a JSON document, with the facts that it proves.

    These facts are the txid, the script that is paid, the network and the number of
    confirmations. Hashes are in reversed hex, other bytes in hex.
    """
    return {
        "format": FORMAT,
        "network": network,
        "txid": txid,
        "script": script.hex(),
        "confirmations": confirmations,
        "payment": _branch_to_json(evidence.payment),
        "coinbase": _branch_to_json(evidence.coinbase),
        "headers": [raw.hex() for raw in evidence.headers],
    }


def extend_document(
    document: dict[str, Any],
    following: Sequence[bytes],
) -> dict[str, Any]:
    """Returns a copy of the proof document that proves more confirmations.

    `following` are the headers after the payment's block, 80 bytes each. The copy has
    these after the header of the payment's block, and no others.
    """
    headers = document["headers"][:1] + [raw.hex() for raw in following]
    return document | {"headers": headers, "confirmations": len(headers)}


def check_document(document: Any) -> ProvenPayment:
    """Verifies the proof in a document, and returns the facts that it proves.

    Raises ProofFailed if the proof is invalid, and CommandError if the document is
    malformed.
    """
    try:
        if document["format"] != FORMAT:
            raise CommandError(f"this is no {FORMAT!r}")
        evidence = Evidence(
            _branch_from_json(document["payment"]),
            _branch_from_json(document["coinbase"]),
            [bytes.fromhex(raw) for raw in document["headers"]],
        )
        network = NETWORKS[document["network"]]
        script = bytes.fromhex(document["script"])
        confirmations = _whole_number(document["confirmations"])
        txid = str(document["txid"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CommandError(f"this is not a payment proof: {error}") from error
    require(confirmations >= 1, "at least one confirmation must be proved")
    require(len(evidence.headers) <= confirmations, "more headers than confirmations")
    return prove(
        evidence,
        txid,
        script,
        max_target_bits=network.max_target_bits,
        confirmations=confirmations,
    )


def parse_documents(text: bytes) -> list[Any]:
    """Parses a JSON file that contains a proof document, or a list of such documents.

    Raises CommandError if the file is not JSON, or if the list is empty. The documents
    are not verified.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(
            "this is not a file of `blocktill invoice show ID --proof`"
        ) from error
    if not isinstance(value, list):
        return [value]
    if not value:
        raise CommandError("there is no proof in this file")
    return value


def _whole_number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _branch_to_json(branch: Branch) -> dict[str, Any]:
    return {
        "raw_tx": branch.raw_tx.hex(),
        "position": branch.position,
        "merkle": list(branch.merkle),
    }


def _branch_from_json(document: Any) -> Branch:
    """Returns the branch in a document.

    Raises KeyError, TypeError, ValueError or AttributeError if it is malformed.
    """
    # bytes.fromhex raises an error unless all characters are hex digits
    siblings = [bytes.fromhex(node).hex() for node in document["merkle"]]
    if any(len(node) != 64 for node in siblings):
        raise ValueError("a Merkle node is not 32 bytes")
    raw_tx = bytes.fromhex(document["raw_tx"])
    position = _whole_number(document["position"])
    return Branch(raw_tx, position, siblings)
