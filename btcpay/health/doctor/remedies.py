"""Advises the operator about explorers and price sources that do not work."""

from btcpay.values.errors import BadStatus, Compressed, WebPage

SANDBOX_REMEDY = (
    "is `blocktill sandbox` running, nothing down?"
    " For other ports use the line it prints"
)
NETWORK_REMEDY = "check this machine's network, or BLOCKTILL_PROXY"
MOVED = range(300, 400)


def remedy_for(error: Exception, setting: str, usual: str) -> str:
    """Returns advice for the operator about an error of an explorer or a price source.

    `setting` is the environment variable that names the source. `usual` is the advice
    for all errors except a redirect, a web page and a compressed response.
    """
    if isinstance(error, BadStatus) and error.status in MOVED:
        return (
            f"no redirect is followed: open its address in a browser, and write the one that it"
            f" leads to into {setting} (often only https:// for http://, or www.)"
        )
    if isinstance(error, WebPage):
        return (
            f"look at its address in {setting}: this path shows a page for people, or a login or"
            " a check for robots stands before it; else name another one"
        )
    if isinstance(error, Compressed):
        return (
            "turn off compression for it in the proxy before it, which compresses unasked; or name"
            f" another one in {setting}"
        )
    return usual
