"""Finds unconfirmed payments to an address in the list of all its transactions.

Some explorers have no `/address/:address/txs/mempool`, above all the software "mempool"
with an electrum backend. Their `/address/:address/txs` shows unconfirmed transactions
too, in pages. Source: mempool/mempool, backend/src/api/bitcoin/bitcoin.routes.ts and
electrum-api.ts.
"""

import time
from datetime import timedelta

from btcpay.chain.explorers.answers import history_page, refuse_too_many
from btcpay.chain.explorers.endpoint import REQUEST_TIMEOUT_S, Endpoint
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.sources import Mempool
from btcpay.settlement.values import SeenOutput
from btcpay.values.errors import BadStatus, FetchError, TimedOut, WebPage
from btcpay.values.times import from_ms, to_ms
from storage.queries import sources

# Statuses with which servers and proxies answer a path that they do not have.
MISSING = (404, 405, 501)
# mempool shows ten transactions a page. A shorter page is the last one.
PAGE_TXS = 10
# Together the pages have as many transactions as electrs shows in its list of the mempool.
MOST_PAGES = 5
# How long a missing path is remembered. The explorer may be replaced by one that has it.
REMEMBERED_FOR = timedelta(days=1)


def is_missing(error: FetchError) -> bool:
    """True if the error means that the server probably lacks the path of the request.

    Some servers then send a web page instead of a 404 status. Such an error does not
    mean that there are no payments.
    """
    if isinstance(error, BadStatus):
        return error.status in MISSING
    return isinstance(error, WebPage)


def search_history(explorer: Endpoint, address: str, script: bytes) -> Mempool:
    """Returns the unconfirmed outputs that pay `script`, the script of `address`.

    Fetches up to MOST_PAGES pages within the time-out of one request. If there may be
    more pages, `is_whole` of the result is False. Raises FetchError if a page fails.

    The search does not stop at the first confirmed transaction, since the explorer
    software "mempool" lists a transaction that spends unconfirmed coins last.
    """
    end_s = time.monotonic() + REQUEST_TIMEOUT_S
    outputs: dict[tuple[str, int], SeenOutput] = {}  # by outpoint
    txids = set[str]()
    query = ""
    for _ in range(MOST_PAGES):
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            raise TimedOut(f"took longer than {REQUEST_TIMEOUT_S} s for all pages")
        path = f"/address/{address}/txs{query}"
        page = explorer.fetch(path, history_page(script), left_s, is_look=True)
        outputs.update((output.outpoint, output) for output in page.outputs)
        all_outputs = refuse_too_many(list(outputs.values()))
        if len(page.txids) < PAGE_TXS:
            return Mempool(all_outputs, is_whole=True)
        if txids.issuperset(page.txids):
            break  # it does not know `after_txid`, and shows the same page again
        txids.update(page.txids)
        query = f"?after_txid={page.txids[-1]}"
    return Mempool(all_outputs, is_whole=False)


def lacks_mempool(quota: Quota | None, name: str) -> bool:
    """True if the explorer lacked `/txs/mempool` when asked within REMEMBERED_FOR.

    `name` is the explorer's `endpoint_name`. Without a quota nothing was stored, and the
    result is False.
    """
    if quota is None:
        return False
    row = quota.db.get_or_none(sources.WITHOUT_MEMPOOL, root=name)
    if row is None:
        return False
    now = quota.now()
    # A later end was stored while the clock was ahead.
    return now < from_ms(row.until_ms) <= now + REMEMBERED_FOR


def note_lack(quota: Quota | None, name: str) -> None:
    if quota:
        until_ms = to_ms(quota.now() + REMEMBERED_FOR)
        quota.db.run(sources.NOTE_WITHOUT_MEMPOOL, root=name, until_ms=until_ms)


def forget_lack(quota: Quota | None, name: str) -> None:
    if quota:
        quota.db.run(sources.FORGET_WITHOUT_MEMPOOL, root=name)
