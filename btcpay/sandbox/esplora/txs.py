"""Esplora's paths about transactions."""

from flask import Response, jsonify

from btcpay.bitcoin.tx import Outpoint
from btcpay.sandbox.esplora.plain import read_hash, read_number, refuse, text
from btcpay.sandbox.esplora.views import outspend_view
from btcpay.sandbox.node.lookup import find, proof
from btcpay.sandbox.state import current


def hex_text(txid: str) -> Response:
    found = find(current().chain, read_hash(txid))
    if found is None:
        refuse(404, "Transaction not found")
    return text(found.tx.raw.hex())


def merkle_proof(txid: str) -> Response:
    chain = current().chain
    found = find(chain, read_hash(txid))
    if found is None or found.height is None:
        refuse(404, "Transaction not found or is unconfirmed")
    merkle, position = proof(chain, found.tx.txid)
    return jsonify({"block_height": found.height, "merkle": merkle, "pos": position})


def outspend(txid: str, vout: str) -> Response:
    outpoint = Outpoint(read_hash(txid), read_number(vout))
    return jsonify(outspend_view(current().chain, outpoint))


ROUTES = (
    ("/tx/<txid>/hex", hex_text),
    ("/tx/<txid>/merkle-proof", merkle_proof),
    ("/tx/<txid>/outspend/<vout>", outspend),
)
