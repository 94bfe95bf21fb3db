"""Esplora's paths about addresses: their history in pages."""

from flask import Response, jsonify

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.esplora.plain import read_hash, refuse
from btcpay.sandbox.esplora.views import tx_view
from btcpay.sandbox.node.lookup import Found, confirmed_of, waiting_of
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.state import current

CHAIN_TXS_PER_PAGE = 25
MAX_MEMPOOL_TXS = 50


def txs(address: str) -> Response:
    """Up to 50 waiting transactions and the newest 25 confirmed ones."""
    script, chain = _script(address), current().chain
    waiting = waiting_of(chain, script)[:MAX_MEMPOOL_TXS]
    return _page(waiting + confirmed_of(chain, script)[:CHAIN_TXS_PER_PAGE])


def txs_mempool(address: str) -> Response:
    return _page(waiting_of(current().chain, _script(address))[:MAX_MEMPOOL_TXS])


def txs_chain(address: str, last_txid: str) -> Response:
    """25 confirmed transactions after `last_txid`; none after an unknown txid."""
    confirmed = confirmed_of(current().chain, _script(address))
    txids = [found.tx.txid for found in confirmed]
    last = read_hash(last_txid)
    start = txids.index(last) + 1 if last in txids else len(txids)
    return _page(confirmed[start : start + CHAIN_TXS_PER_PAGE])


def _page(founds: list[Found]) -> Response:
    return jsonify([tx_view(current().chain, found) for found in founds])


def _script(address: str) -> bytes:
    try:
        return script_of(address)
    except BadRequest as error:
        refuse(400, str(error))


ROUTES = (
    ("/address/<address>/txs", txs),
    ("/address/<address>/txs/mempool", txs_mempool),
    ("/address/<address>/txs/chain/<last_txid>", txs_chain),
)
