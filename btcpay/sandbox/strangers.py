"""Who may see the page and press its buttons: this machine's browser, on the page itself."""

from urllib.parse import urlsplit

from flask import abort, request

from btcpay.sandbox.esplora.plain import text
from btcpay.values.hosts import is_here

OWN_SITES = ("", "same-origin", "none")


def refuse_strangers() -> None:
    """Ends a request that another site has made: 403.

    A name of another site may lead to this machine (DNS rebinding), so the Host has to be ours.
    A form of another site sends its Origin; what is no browser sends none.
    """
    if not is_here(urlsplit(f"//{request.host}").hostname):
        abort(text("The sandbox is for this machine: open it at http://127.0.0.1", 403))
    origin = request.headers.get("Origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.host
    if request.method == "POST" and (
        foreign or request.headers.get("Sec-Fetch-Site", "") not in OWN_SITES
    ):
        abort(text("The sandbox's buttons are pressed on its own page.", 403))
