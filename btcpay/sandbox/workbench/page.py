"""The page: scenes, the shop's invoices, the chain, faults and events, each with its buttons."""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from urllib.parse import urlsplit

from flask import (
    Blueprint,
    Response,
    abort,
    jsonify,
    redirect,
    render_template,
    request,
)
from flask.typing import ResponseReturnValue

from btcpay.sandbox.errors import ShopAway
from btcpay.sandbox.esplora import text
from btcpay.sandbox.node.ledger import Found
from btcpay.sandbox.node.script import address_of, script_of
from btcpay.sandbox.payer.wallet import total
from btcpay.sandbox.scenes.stories import scenes
from btcpay.sandbox.shop import Json
from btcpay.sandbox.state import Sandbox, current
from btcpay.values.hosts import is_here

SHOWN_INVOICES = 8
SHOWN_TXS = 6
OVER = ("paid", "expired", "canceled")
OWN_SITES = ("", "same-origin", "none")
# Its own style and script alone; the frame shows the shop's pages, on any host.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'; frame-src http: https:"
)


def create_page() -> Blueprint:
    blueprint = Blueprint(
        "page",
        __name__,
        template_folder="templates",
        static_folder="static",
        static_url_path="/sandbox/static",
    )
    blueprint.before_request(refuse_other_sites)
    blueprint.add_url_rule("/", view_func=show)
    blueprint.add_url_rule("/sandbox/state", view_func=state)
    blueprint.add_url_rule("/sandbox/merchant", view_func=merchant)
    return blueprint


def refuse_other_sites() -> None:
    """403 for another site: for its form, and for its name if that leads here (DNS rebinding)."""
    if not is_here(urlsplit(f"//{request.host}").hostname):
        abort(text("The sandbox is for this machine: open it at http://127.0.0.1", 403))
    origin = request.headers.get("Origin")  # only browsers send one
    foreign = origin is not None and urlsplit(origin).netloc != request.host
    if request.method == "POST" and (
        foreign or request.headers.get("Sec-Fetch-Site", "") not in OWN_SITES
    ):
        abort(text("The sandbox's buttons are pressed on its own page.", 403))


def state() -> Response:
    sandbox = current()
    chain = sandbox.chain
    switches = sandbox.switches
    return jsonify(
        {
            "height": chain.ledger.height,
            "waiting": len(chain.mempool.entries),
            "explorer": switches.explorer,
            "price": switches.price,
            "usd": f"{switches.price_usd:.2f}",
            "scene": sandbox.stage.view(),
        }
    )


def merchant() -> ResponseReturnValue:
    return redirect(current().require_shop().login_url())


def show(message: str = "") -> Response:
    """The page as HTML, with a problem if there is one to tell."""
    sandbox = current()
    scene = sandbox.stage.view()
    chain = sandbox.chain
    wallet = sandbox.wallet
    invoices, is_away = _invoices(
        sandbox
    )  # first: nothing waits for it with the chain's lock
    with chain.lock:
        confirmed = chain.ledger.confirmed.values()
        waiting = chain.mempool.entries.values()
        newest = (
            each for each in reversed([*confirmed, *waiting]) if not each.tx.is_coinbase
        )
        page = render_template(
            "sandbox.html",
            sandbox=sandbox,
            ledger=chain.ledger,
            waiting=len(waiting),
            balance_sats=total(wallet.coins()),  # with waiting change
            txs=list(islice(newest, SHOWN_TXS)),
            rows=[
                (each, on_chain(sandbox, each)) for each in invoices[:SHOWN_INVOICES]
            ],
            invoices=invoices,
            is_away=is_away,
            customer_page=_customer_page(scene, invoices[:SHOWN_INVOICES]),
            scene=scene,
            scenes=scenes(),
            events=list(sandbox.events),
            message=message,
            address_of=address_of,
            time_of=lambda unix_s: f"{datetime.fromtimestamp(unix_s, UTC):%H:%M:%S}",
        )
    response = Response(page)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cache-Control"] = "no-store"
    return response


@dataclass(frozen=True)
class OnChain:
    """Satoshis that came to an invoice's address: waiting, and in blocks."""

    waiting_sats: int
    confirmed_sats: int
    missing_sats: int
    payments: tuple[str, ...]  # txids that the payer could replace, newest first


def on_chain(sandbox: Sandbox, invoice: Json) -> OnChain:
    """Raises BadRequest for an address that is not regtest's."""
    with sandbox.chain.lock:
        script = script_of(invoice["deposit_address"])
        own = sandbox.wallet.payments()
        waiting = sandbox.chain.waiting_of(script)
        confirmed = sandbox.chain.confirmed_of(script)
    waiting_sats = _sum(waiting, script)
    confirmed_sats = _sum(confirmed, script)
    return OnChain(
        waiting_sats,
        confirmed_sats,
        max(0, invoice["amount_sats"] - waiting_sats - confirmed_sats),
        tuple(found.tx.txid for found in waiting if found.tx.txid in own),
    )


def _sum(all_found: list[Found], script: bytes) -> int:
    outputs = (output for found in all_found for output in found.tx.outputs)
    return sum(output.value_sats for output in outputs if output.script == script)


def _invoices(sandbox: Sandbox) -> tuple[list[Json], bool]:
    """The shop's, and True if it should have some and does not answer."""
    try:
        return (sandbox.shop.invoices() if sandbox.shop else []), False
    except ShopAway:
        return [], True


def _customer_page(scene: Json | None, invoices: list[Json]) -> str:
    """The page of the scene's invoice, else of the newest open one, else of the newest."""
    newest = min(
        invoices, key=lambda each: each["status"] in OVER, default={"pay_url": ""}
    )
    shown = (scene and scene["invoice"]) or newest
    return str(shown["pay_url"])
