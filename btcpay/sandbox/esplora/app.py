"""The Esplora interface at the root path, as Blockstream's electrs speaks it; 503 while down."""

from collections.abc import Callable
from functools import wraps

from flask import Blueprint, Response

from btcpay.sandbox.esplora import addresses, blocks, txs
from btcpay.sandbox.esplora.plain import refuse, text
from btcpay.sandbox.state import current

READS = blocks.ROUTES + addresses.ROUTES + txs.ROUTES


def create_esplora() -> Blueprint:
    """All paths of the explorer; while it is switched off each answers 503."""
    blueprint = Blueprint("esplora", __name__)
    blueprint.before_request(_refuse_while_down)
    for path, view in READS:
        endpoint = path.strip("/").replace("/", "-")
        blueprint.add_url_rule(path, endpoint, _consistent(view), methods=["GET"])
    return blueprint


def no_such_path(path: str) -> Response:
    """electrs' answer to a path that it does not know."""
    return text(f'endpoint does not exist "{path}"', 404)


def _refuse_while_down() -> None:
    if not current().switches.explorer_up:
        refuse(503, "Service Unavailable")


def _consistent(view: Callable[..., Response]) -> Callable[..., Response]:
    """The view under the chain's lock, so that one answer never shows two states."""

    @wraps(view)
    def locked(**parts: str) -> Response:
        with current().chain.lock:
            return view(**parts)

    return locked
