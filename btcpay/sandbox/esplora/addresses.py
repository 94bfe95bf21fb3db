"""Esplora's paths about addresses: the newest of their history, and what waits."""

from flask import Response, jsonify

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.esplora.plain import refuse
from btcpay.sandbox.esplora.views import tx_view
from btcpay.sandbox.node.lookup import Found, confirmed_of, waiting_of
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.state import current

CHAIN_TXS_PER_PAGE = 25
MAX_MEMPOOL_TXS = 50


def txs(address: str) -> Response:
    """Up to 50 waiting transactions and the newest 25 confirmed ones."""
    script, chain = _script(address), current().chain
    return _page(_waiting(script) + confirmed_of(chain, script)[:CHAIN_TXS_PER_PAGE])


def txs_chain(address: str, last_seen: str) -> Response:
    """The 25 confirmed ones that follow a transaction of an earlier page."""
    confirmed = confirmed_of(current().chain, _script(address))
    txids = [found.tx.txid for found in confirmed]
    start = txids.index(last_seen) + 1 if last_seen in txids else 0
    return _page(confirmed[start : start + CHAIN_TXS_PER_PAGE])


def txs_mempool(address: str) -> Response:
    return _page(_waiting(_script(address)))


def _waiting(script: bytes) -> list[Found]:
    lie = current().switches.lie
    told = lie.waiting(script) if lie else []
    return (told + waiting_of(current().chain, script))[:MAX_MEMPOOL_TXS]


def _page(founds: list[Found]) -> Response:
    return jsonify([tx_view(current().chain, found) for found in founds])


def _script(address: str) -> bytes:
    try:
        return script_of(address)
    except BadRequest as error:
        refuse(400, str(error))


ROUTES = (
    ("/address/<address>/txs", txs),
    ("/address/<address>/txs/chain/<last_seen>", txs_chain),
    ("/address/<address>/txs/mempool", txs_mempool),
)
