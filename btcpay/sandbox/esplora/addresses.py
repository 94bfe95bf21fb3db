"""Esplora's paths about addresses: sums, history in pages, unspent outputs."""

from flask import Response, jsonify

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.esplora.plain import HASH, refuse
from btcpay.sandbox.esplora.views import status_view, tx_view
from btcpay.sandbox.node.lookup import Found, confirmed_of, totals, unspent_of, waiting_of
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.state import current

CHAIN_TXS_PER_PAGE = 25
MAX_MEMPOOL_TXS = 50


def address(address: str) -> Response:
    script, chain = _script(address), current().chain
    return jsonify(
        {
            "address": address,
            "chain_stats": totals(confirmed_of(chain, script), script)._asdict(),
            "mempool_stats": totals(waiting_of(chain, script), script)._asdict(),
        }
    )


def txs(address: str) -> Response:
    """Up to 50 waiting ones and the newest 25 confirmed."""
    script, chain = _script(address), current().chain
    waiting = waiting_of(chain, script)[:MAX_MEMPOOL_TXS]
    return _page(waiting + confirmed_of(chain, script)[:CHAIN_TXS_PER_PAGE])


def txs_mempool(address: str) -> Response:
    return _page(waiting_of(current().chain, _script(address))[:MAX_MEMPOOL_TXS])


def txs_chain(address: str, last_txid: str = "") -> Response:
    """25 confirmed ones after `last_txid`: none after an unknown txid, the first after no txid."""
    confirmed = confirmed_of(current().chain, _script(address))
    start = 0
    if HASH.fullmatch(last_txid):
        txids = [found.tx.txid for found in confirmed]
        start = txids.index(last_txid) + 1 if last_txid in txids else len(txids)
    return _page(confirmed[start : start + CHAIN_TXS_PER_PAGE])


def utxo(address: str) -> Response:
    chain = current().chain
    return jsonify(
        [
            {
                "txid": outpoint.txid,
                "vout": outpoint.vout,
                "value": output.value_sats,
                "status": status_view(chain, height),
            }
            for outpoint, output, height in unspent_of(chain, _script(address))
        ]
    )


def _page(founds: list[Found]) -> Response:
    return jsonify([tx_view(current().chain, found) for found in founds])


def _script(address: str) -> bytes:
    try:
        return script_of(address)
    except BadRequest as error:
        refuse(400, str(error))


ROUTES = (
    ("/address/<address>", address),
    ("/address/<address>/txs", txs),
    ("/address/<address>/txs/mempool", txs_mempool),
    ("/address/<address>/txs/chain", txs_chain),
    ("/address/<address>/txs/chain/<last_txid>", txs_chain),
    ("/address/<address>/utxo", utxo),
)
