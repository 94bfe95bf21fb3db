"""The explorer client: Esplora over HTTP, the next root when one fails, never a guess.

Source: Blockstream/esplora API.md; mempool.space's API documentation.
"""

import functools
import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from marshmallow import ValidationError

from btcpay import fetch
from btcpay.errors import ExplorerError, ProofFailed
from btcpay.instants import from_unix_s
from schemas.esplora import MAX_MONEY_SATS, Transaction

log = logging.getLogger(__name__)
T = TypeVar("T")
Get = Callable[[str], bytes]

REQUEST_TIMEOUT_S = 20  # for a whole answer; public explorers take several seconds when busy
MAX_ANSWER_BYTES = 16_000_000  # 75 transactions of ordinary size are some 200 kB
MAX_BLOCKS_BEHIND = 2  # blocks come in bunches; an explorer three behind is stuck
MAX_PAGES = 400  # 10,000 transactions to one address is no invoice any more

_HISTORY = Transaction(many=True)


@dataclass(frozen=True)
class Block:
    """The block that a transaction is in; `mined_at` is its header's time."""

    height: int
    hash: str
    mined_at: datetime


@dataclass(frozen=True)
class SeenOutput:
    """An output that pays the address; `spent_height` is the block in which it was spent."""

    txid: str
    vout: int
    amount_sats: int
    coinbase: bool
    block: Block | None
    spent_height: int | None


class Explorers:
    """Several Esplora roots, asked in order of preference.

    A root that could not be reached goes to the back of the line for as long as this value lives,
    so that a run does not wait for it at every address. `calls` counts requests. Thread safe.
    """

    def __init__(self, roots: Sequence[str], session: requests.Session) -> None:
        self._roots = list(roots)
        self._session = session
        self._lock = threading.Lock()
        self._last_root = ""
        self._fresh: set[str] = set()
        self._least_height = 0
        self.calls = 0

    def ask(self, question: Callable[[Get], T]) -> T:
        """What `question` makes of the first root that answers it whole.

        `question` gets a function from path to body. FetchError, ValidationError and ProofFailed
        turn it to the next root. Raises ExplorerError when no root is left.
        """
        errors = []
        for root in list(self._roots):
            get = functools.partial(self._get, root)
            try:
                self._refuse_stale(root, get)
                answer = question(get)
            except (fetch.FetchError, ValidationError, ProofFailed) as error:
                # The host alone: a root may carry credentials.
                errors.append(f"{urlsplit(root).hostname} {_brief(error)}")
                log.warning("explorer %s", errors[-1])
                if not (isinstance(error, fetch.FetchError) and error.status in (400, 404)):
                    self._prefer_others(root)
            else:
                self._last_root = root
                return answer
        raise ExplorerError("no explorer answered: " + "; ".join(errors))

    def require(self, height: int) -> None:
        """From now on only roots that know a block near `height`, which the last one answered.

        A root that is behind would not show what has been paid since.
        """
        self._fresh, self._least_height = {self._last_root}, height - MAX_BLOCKS_BEHIND

    def _refuse_stale(self, root: str, get: Get) -> None:
        if self._least_height <= 0 or root in self._fresh:
            return
        behind = self._least_height + MAX_BLOCKS_BEHIND - tip_height(get)
        if behind > MAX_BLOCKS_BEHIND:
            raise fetch.FetchError(f"is {behind} blocks behind the others")
        self._fresh.add(root)

    def tip_height(self) -> int:
        """Height of the best block. Raises ExplorerError."""
        return self.ask(tip_height)

    def outputs_to(self, address: str, script: bytes) -> list[SeenOutput]:
        """Every output that ever paid `script`, the address's scriptPubKey, spent or not.

        Complete, or ExplorerError: an empty list says that the explorer knows of none.
        """

        def question(get: Get) -> list[SeenOutput]:
            outputs = outputs_in(_history(get, address), script)
            if sum(output.amount_sats for output in outputs) > MAX_MONEY_SATS:
                raise fetch.FetchError("answered more money than can exist")
            return outputs

        return self.ask(question)

    def _prefer_others(self, root: str) -> None:
        with self._lock:
            self._roots.remove(root)
            self._roots.append(root)

    def _get(self, root: str, path: str) -> bytes:
        with self._lock:
            self.calls += 1
        return fetch.get(self._session, root + path, REQUEST_TIMEOUT_S, MAX_ANSWER_BYTES)


def get_text(get: Get, path: str, pattern: str, what: str) -> str:
    """A plain text answer that fully matches. Raises FetchError, naming `what`, for any other."""
    text = get(path).decode("ascii", "replace").strip()
    if not re.fullmatch(pattern, text):
        raise fetch.FetchError(f"answered no {what}")
    return text


def tip_height(get: Get) -> int:
    """Height of the root's best block. Raises FetchError."""
    return int(get_text(get, "/blocks/tip/height", "[0-9]{1,8}|100000000", "height"))


def _history(get: Get, address: str) -> list[dict[str, Any]]:
    """All transactions of the address, by txid once, newest first.

    A page's length says nothing about what follows: servers differ in their caps. Only a
    page without a new transaction ends the list.
    """
    seen: dict[str, dict[str, Any]] = {}
    for page in _pages(get, address, seen):
        fresh = {tx["txid"]: tx for tx in page if tx["txid"] not in seen}
        if not fresh:
            return list(seen.values())
        seen |= fresh
    raise fetch.FetchError(f"answered more than {MAX_PAGES} pages for one address")


def _pages(
    get: Get, address: str, seen: dict[str, dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    path = f"/address/{address}/txs"
    for _ in range(MAX_PAGES):
        yield _HISTORY.load(fetch.parse_json(get(path)))
        last = next(reversed(seen.values()))
        # Behind confirmed ones Esplora continues under /chain; behind a page of unconfirmed
        # ones only mempool.space has more, and other servers answer the first page again.
        after = f"/chain/{last['txid']}" if _block(last) else f"?after_txid={last['txid']}"
        path = f"/address/{address}/txs{after}"


def outputs_in(history: list[dict[str, Any]], script: bytes) -> list[SeenOutput]:
    """What an address's transactions pay to `script` (0 satoshis are no money), and where spent."""
    spent = {
        (spending["txid"], spending["vout"]): block.height
        for tx in history
        if (block := _block(tx))
        for spending in tx["vin"]
    }
    return [
        SeenOutput(
            txid=tx["txid"],
            vout=vout,
            amount_sats=output["value"],
            coinbase=any(spending["is_coinbase"] for spending in tx["vin"]),
            block=_block(tx),
            spent_height=spent.get((tx["txid"], vout)),
        )
        for tx in history
        for vout, output in enumerate(tx["vout"])
        if output["scriptpubkey"] == script.hex() and output["value"] > 0
    ]


def _block(tx: dict[str, Any]) -> Block | None:
    status = tx["status"]
    if not status["confirmed"]:
        return None
    return Block(status["block_height"], status["block_hash"], from_unix_s(status["block_time"]))


def _brief(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"answered what Esplora does not: {str(error.messages)[:200]}"
    return str(error)
