"""Esplora's paths about transactions, and the one that takes them in."""

import json

from flask import Response, jsonify, request

from btcpay.bitcoin.tx import Outpoint
from btcpay.bitcoin.wire import Malformed
from btcpay.sandbox.errors import Rejected
from btcpay.sandbox.esplora.plain import binary, read_hash, read_number, refuse, text
from btcpay.sandbox.esplora.views import outspend_view, status_view, tx_view
from btcpay.sandbox.node.lookup import Found, find, proof
from btcpay.sandbox.state import current

# sendrawtransaction's error codes, which electrs passes on.
DECODE_FAILED, REJECTED = -22, -26
RPC_CODES = {"bad-txns-inputs-missingorspent": -25, "Transaction outputs already in utxo set": -27}


def tx(txid: str) -> Response:
    return jsonify(tx_view(current().chain, _found(txid)))


def status(txid: str) -> Response:
    """Also answers for a transaction that does not exist: it is not confirmed."""
    chain = current().chain
    found = find(chain, read_hash(txid))
    return jsonify(status_view(chain, found.height if found else None))


def hex_text(txid: str) -> Response:
    return text(_found(txid).tx.raw.hex())


def raw(txid: str) -> Response:
    return binary(_found(txid).tx.raw)


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


def outspends(txid: str) -> Response:
    chain, found = current().chain, _found(txid)
    vouts = range(len(found.tx.outputs))
    return jsonify([outspend_view(chain, Outpoint(found.tx.txid, vout)) for vout in vouts])


def broadcast() -> Response:
    """POST /tx: the body is the transaction in hex; its txid, or 400 with the reason."""
    try:
        body = bytes.fromhex(request.get_data().decode("ascii").strip())
        return text(current().chain.accept(body, current().clock()))
    except (ValueError, Malformed):
        refuse(
            400,
            _rpc_error(DECODE_FAILED, "TX decode failed. Make sure the tx has at least one input."),
        )
    except Rejected as error:
        refuse(400, _rpc_error(RPC_CODES.get(error.reason, REJECTED), error.reason))


def _found(txid: str) -> Found:
    found = find(current().chain, read_hash(txid))
    if found is None:
        refuse(404, "Transaction not found")
    return found


def _rpc_error(code: int, message: str) -> str:
    return "sendrawtransaction RPC error: " + json.dumps({"code": code, "message": message})


ROUTES = (
    ("/tx/<txid>", tx),
    ("/tx/<txid>/status", status),
    ("/tx/<txid>/hex", hex_text),
    ("/tx/<txid>/raw", raw),
    ("/tx/<txid>/merkle-proof", merkle_proof),
    ("/tx/<txid>/outspend/<vout>", outspend),
    ("/tx/<txid>/outspends", outspends),
)
