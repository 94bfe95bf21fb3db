"""The sandbox's page: scenes, invoices, the chain, simulated faults and events."""

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
from btcpay.sandbox.esplora import text_response
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.ledger import ChainTx
from btcpay.sandbox.node.script import address_of, script_of
from btcpay.sandbox.payer.coins import sum_sats
from btcpay.sandbox.scenes.stories import scenes
from btcpay.sandbox.shop import Json
from btcpay.sandbox.state import Sandbox, current_sandbox
from btcpay.values.hosts import is_here
from btcpay.values.statuses import InvoiceStatus

SHOWN_INVOICES = 8
LISTED_INVOICES = 100  # the maximum that the shop lists at once
SHOWN_TXS = 6
OVER = (InvoiceStatus.PAID, InvoiceStatus.EXPIRED, InvoiceStatus.CANCELED)
OWN_SITES = ("", "same-origin", "none")
# Allows only its own style and script. The frame shows the shop's pages, on any host.
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
    """Aborts a request that another website has caused, with the status 403.

    Such requests are those to another host name than this machine's (DNS rebinding), and
    those of forms on other sites' pages.
    """
    if not is_here(urlsplit(f"//{request.host}").hostname):
        message = "The sandbox is for this machine: open it at http://127.0.0.1"
        abort(text_response(message, 403))
    if request.method == "POST" and not _is_own_form():
        message = "The sandbox's buttons are pressed on its own page."
        abort(text_response(message, 403))


def _is_own_form() -> bool:
    """True unless the browser says that the form belongs to another site."""
    origin = request.headers.get("Origin")  # only browsers send it
    if origin is not None and urlsplit(origin).netloc != request.host:
        return False
    return request.headers.get("Sec-Fetch-Site", "") in OWN_SITES


def state() -> Response:
    sandbox = current_sandbox()
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
    return redirect(current_sandbox().require_shop().login_url())


def show(problem: str = "") -> Response:
    """Returns the page as HTML. `problem` is the error message to show; "" for none."""
    sandbox = current_sandbox()
    # This comes before the lock: nothing may wait for the shop while the chain is locked.
    invoices = _invoices(sandbox)
    with sandbox.chain.lock:
        page = _render(sandbox, invoices, problem)
    response = Response(page)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cache-Control"] = "no-store"
    return response


def _render(sandbox: Sandbox, invoices: list[Json] | None, problem: str) -> str:
    """Renders the page. `invoices` is None if the shop does not respond."""
    is_away = invoices is None
    invoices = invoices or []
    chain = sandbox.chain
    scene = sandbox.stage.view()
    newest_invoices = invoices[:SHOWN_INVOICES]
    rows = [(invoice, on_chain(sandbox, invoice)) for invoice in newest_invoices]
    return render_template(
        "sandbox.html",
        sandbox=sandbox,
        ledger=chain.ledger,
        waiting=len(chain.mempool.entries),
        balance_sats=sum_sats(sandbox.wallet.coins()),  # includes unconfirmed change
        txs=_newest_txs(chain),
        rows=rows,
        older=len(invoices) - len(rows),
        has_more_older=len(invoices) == LISTED_INVOICES,
        is_away=is_away,
        over=OVER,
        customer_page=_customer_page(scene, newest_invoices),
        scene=scene,
        scenes=scenes(),
        events=list(sandbox.events),
        message=problem,
        address_of=address_of,
        time_of=time_of,
    )


def _newest_txs(chain: Chain) -> list[ChainTx]:
    """Returns the newest transactions, unconfirmed ones first. Coinbases are left out."""
    confirmed = chain.ledger.confirmed.values()
    waiting = chain.mempool.entries.values()
    newest_first = reversed([*confirmed, *waiting])
    payments = (entry for entry in newest_first if not entry.tx.is_coinbase)
    return list(islice(payments, SHOWN_TXS))


def time_of(unix_s: int) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%H:%M:%S}"


@dataclass(frozen=True)
class OnChain:
    """The satoshis that an invoice's address has received, and those still missing.

    `payments` are the txids of the payments that the payer can replace, newest first.
    """

    waiting_sats: int
    confirmed_sats: int
    missing_sats: int
    payments: tuple[str, ...]


def on_chain(sandbox: Sandbox, invoice: Json) -> OnChain:
    """Returns the satoshis that the invoice's address has received on the chain.

    Raises BadRequest if the invoice's address is not a regtest address.
    """
    with sandbox.chain.lock:
        script = script_of(invoice["deposit_address"])
        own_txids = sandbox.wallet.payments()
        waiting = sandbox.chain.waiting_of(script)
        confirmed = sandbox.chain.confirmed_of(script)
    waiting_sats = _paid_sats(waiting, script)
    confirmed_sats = _paid_sats(confirmed, script)
    missing_sats = invoice["amount_sats"] - waiting_sats - confirmed_sats
    waiting_txids = [entry.tx.txid for entry in waiting]
    return OnChain(
        waiting_sats=waiting_sats,
        confirmed_sats=confirmed_sats,
        missing_sats=max(0, missing_sats),
        payments=tuple(txid for txid in waiting_txids if txid in own_txids),
    )


def _paid_sats(entries: list[ChainTx], script: bytes) -> int:
    """Returns the satoshis that the transactions pay to the script."""
    sats = 0
    for entry in entries:
        for output in entry.tx.outputs:
            if output.script == script:
                sats += output.value_sats
    return sats


def _invoices(sandbox: Sandbox) -> list[Json] | None:
    """Returns the shop's newest invoices.

    Returns [] if the sandbox runs without a shop, None if the shop does not respond.
    """
    if sandbox.shop is None:
        return []
    try:
        return sandbox.shop.invoices()
    except ShopAway:
        return None


def _customer_page(scene: Json | None, invoices: list[Json]) -> str:
    """Returns the URL of an invoice's page for the frame; "" if there is no invoice.

    It is the invoice of the newest scene, else the newest open invoice, else the newest
    one.
    """
    if scene and scene["invoice"]:
        return str(scene["invoice"]["pay_url"])
    for invoice in invoices:
        if invoice["status"] not in OVER:
            return str(invoice["pay_url"])
    if invoices:
        return str(invoices[0]["pay_url"])
    return ""
