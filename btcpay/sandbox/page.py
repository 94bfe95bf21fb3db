"""The page: what the chain looks like, above the buttons."""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from flask import Blueprint, Response, jsonify, render_template

from btcpay.bitcoin.tx import Tx
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.ledger import Ledger
from btcpay.sandbox.node.lookup import find
from btcpay.sandbox.node.script import address_of
from btcpay.sandbox.state import Sandbox, current

SHOWN_BLOCKS = 8
SHOWN_TXS = 20


def create_page() -> Blueprint:
    blueprint = Blueprint("page", __name__, template_folder="templates")
    blueprint.add_url_rule("/", "page", show)
    blueprint.add_url_rule("/sandbox/state", "state", state)
    return blueprint


def state() -> Response:
    """The page's first line as JSON, also while explorer and price are down."""
    sandbox = current()
    chain, switches = sandbox.chain, sandbox.switches
    return jsonify(
        {
            "height": chain.ledger.height,
            "waiting": len(chain.mempool.entries),
            "explorer": "up" if switches.explorer_up else "down",
            "price": "up" if switches.price_up else "down",
            "usd": f"{switches.price_usd:.2f}",
        }
    )


def show(message: str = "", typed: Mapping[str, str] = MappingProxyType({})) -> str:
    """The page as HTML; when `message` says what went wrong, with what was typed in its fields."""
    sandbox = current()
    with sandbox.chain.lock:
        facts = _facts(sandbox)
    return render_template("sandbox.html", message=message, typed=typed, **facts)


def _facts(sandbox: Sandbox) -> dict[str, Any]:
    chain = sandbox.chain
    newest_blocks = chain.ledger.hashes[-SHOWN_BLOCKS:][::-1]
    return {
        "height": chain.ledger.height,
        "switches": sandbox.switches,
        "balance_sats": sandbox.wallet.balance_sats,
        "wallet_address": sandbox.wallet.address,
        "blocks": [_block_row(chain.ledger, each) for each in newest_blocks],
        "waiting": len(chain.mempool.entries),
        "payments": sandbox.wallet.payments(),
        "txs": [_tx_row(chain, sandbox.wallet.script, txid) for txid in _last_txids(chain)],
    }


def _last_txids(chain: Chain) -> list[str]:
    """The newest transactions that are no coinbase, waiting ones first."""
    confirmed = reversed(chain.ledger.confirmed.values())
    recent = (each.tx.txid for each in confirmed if each.position > 0)
    newest = itertools.chain(reversed(chain.mempool.entries), recent)
    return list(itertools.islice(newest, SHOWN_TXS))


def _block_row(ledger: Ledger, block_hash: str) -> dict[str, Any]:
    block = ledger.blocks[block_hash]
    time = datetime.fromtimestamp(block.time, UTC)
    return {
        "height": ledger.heights[block_hash],
        "hash": block_hash,
        "time": time,
        "tx_count": len(block.txs),
    }


def _tx_row(chain: Chain, wallet_script: bytes, txid: str) -> dict[str, Any]:
    found = find(chain, txid)
    height = found.height if found else None
    return {
        "txid": txid,
        "height": height,
        "outputs": _paid(found.tx, wallet_script) if found else [],
    }


def _paid(tx: Tx, wallet_script: bytes) -> list[tuple[str, int]]:
    """Address and satoshis of every output but the wallet's own change."""
    others = [output for output in tx.outputs if output.script != wallet_script]
    return [(address_of(o.script) or o.script.hex(), o.value_sats) for o in others]
