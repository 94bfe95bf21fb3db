"""The whole sandbox: explorer, ticker, page and buttons over one chain, on 127.0.0.1."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from btcpay.sandbox.errors import BadRequest, Rejected, ShopAway
from btcpay.sandbox.esplora.app import create_esplora, no_such_path
from btcpay.sandbox.keepalive import Server
from btcpay.sandbox.shop import Shop
from btcpay.sandbox.state import attach, open_sandbox
from btcpay.sandbox.ticker import create_ticker
from btcpay.sandbox.workbench.buttons import create_buttons, wants_json
from btcpay.sandbox.workbench.page import create_page, show


def wall_clock() -> int:
    """Unix seconds."""
    return int(time.time())


def create_sandbox(
    state_dir: Path, clock: Callable[[], int] = wall_clock, shop: Shop | None = None
) -> Flask:
    """Continues the chain in `state_dir` or begins one there. Raises JournalError.

    `shop` is the one that is paid on it, if one runs beside it. `state_dir` holds `chain.jsonl`
    and `wallet.wif`; it is locked until the process ends or
    `app.extensions[EXTENSION].close()`.
    """
    app = create_app()
    attach(app, open_sandbox(state_dir, clock, shop))
    return app


def create_app() -> Flask:
    """The routes of a sandbox that is to be attached."""
    app = Flask(__name__, static_folder=None)
    for blueprint in (create_esplora(), create_ticker(), create_page(), create_buttons()):
        app.register_blueprint(blueprint)
    app.register_error_handler(NotFound, _not_found)
    app.register_error_handler(BadRequest, _refused)
    app.register_error_handler(Rejected, _refused)
    app.register_error_handler(ShopAway, _no_shop)
    return app


def serve(app: Flask, port: int) -> None:
    """Serves until SIGTERM or SIGINT. Raises OSError when the port is taken."""
    with Server(app, port) as server:
        if threading.current_thread() is threading.main_thread():
            # Also SIGINT: what a shell starts in the background ignores it otherwise.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, _interrupt)
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            return


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _not_found(_error: NotFound) -> ResponseReturnValue:
    return no_such_path(request.path)


def _refused(error: BadRequest | Rejected) -> ResponseReturnValue:
    """A button that could not be pressed: 400 with the reason, on the page or as JSON."""
    return _told(str(error), 400)


def _no_shop(error: ShopAway) -> ResponseReturnValue:
    """A button that wants the shop, which does not answer: 502."""
    return _told(f"{error}; the log says more", 502)


def _told(message: str, status: int) -> ResponseReturnValue:
    if wants_json():
        return jsonify({"error": message}), status
    return show(message, request.form), status
