"""Answers as mempool/mempool gives them on its electrum backend, read from its sources.

backend/src/api/bitcoin/bitcoin.routes.ts and electrum-api.ts, commit 3b6ed8bd (2026-08): it has no
`/address/:address/txs/mempool`, lists ten transactions a page, and answers 500 for what Bitcoin
Core does not know.
"""

from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from tests.support.fake_esplora import Json, Liar
from tests.support.serving import Reply, say

PAGE_TXS = 10
AT_THE_TOP = 9_999_999


def cannot_get(path: str) -> Reply:
    """Express's page for a path that it does not have."""
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Error</title>\n'
        f"</head>\n<body>\n<pre>Cannot GET /api/v1{path}</pre>\n</body>\n</html>\n"
    )
    return say(page, 404, **{"Content-Type": "text/html; charset=utf-8"})


def _electrum_height(tx: Json) -> int:
    """An Electrum server's: 0 waits, -1 waits for a transaction that waits too."""
    if tx["status"]["confirmed"]:
        return int(tx["status"]["block_height"])
    return int(tx.get("electrum_height", 0))


def page_of(txs: Sequence[Json], target: str) -> Reply:
    """A page of the address's transactions, from behind `after_txid` on.

    As there, -1 comes last, and an unknown or first `after_txid` gives the first page.
    """
    query = parse_qs(urlsplit(target).query)
    history = sorted(
        txs, key=lambda tx: _electrum_height(tx) or AT_THE_TOP, reverse=True
    )
    txids = [tx["txid"] for tx in history]
    (after,) = query.get("after_txid", [""])
    start = 0
    if after in txids[1:]:
        start = txids.index(after) + 1
    return say(history[start : start + PAGE_TXS])


class MempoolElectrum(Liar):
    """A mempool instance on its electrum backend, before an honest chain."""

    def __init__(self, honest: str) -> None:
        super().__init__(honest)
        self.root += "/api"

    def _answer(self, target: str) -> Reply:
        path = urlsplit(target).path.removeprefix("/api")
        match path.split("/")[1:]:
            case ["address", address, "txs"]:
                status, txs = self.ask_honest(f"/address/{address}/txs")
                if status != 200:
                    return say("Invalid Bitcoin address", status)
                return page_of(txs, target)
            case ["address", *_]:
                return cannot_get(path)
        status, truth = self.ask_honest(path)
        if status == 404:
            return say({"error": "Failed to get block"}, 500)
        html = {}
        if path.startswith("/block-height/"):
            html["Content-Type"] = "text/html; charset=utf-8"
        return say(truth, status, **html)
