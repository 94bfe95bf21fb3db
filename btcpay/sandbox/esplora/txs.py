"""Esplora's path about a coin: where it was spent."""

from flask import Response, jsonify

from btcpay.bitcoin.tx import Outpoint
from btcpay.sandbox.esplora.plain import read_hash, read_number
from btcpay.sandbox.esplora.views import outspend_view
from btcpay.sandbox.state import current


def outspend(txid: str, vout: str) -> Response:
    outpoint = Outpoint(read_hash(txid), read_number(vout))
    return jsonify(outspend_view(current().chain, outpoint))


ROUTES = (("/tx/<txid>/outspend/<vout>", outspend),)
