"""Explorers that hold back as much as they can, each in its way; `KINDS` has them by name.

Each gets a till, of which `liar` is the explorer that shall be bad, and the event that ends its
silence; the times are those of the product's limits, divided by `hasty`.
"""

import contextlib
import itertools
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import orjson
from builders import REGTEST
from fake_esplora import LiedTo, block_view, dripping, say, silent, slow, tx_of
from rival import Rival
from serving import Reply

from btcpay.bitcoin.address import script_of

Bad = Callable[[LiedTo, threading.Event, float], None]

_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


def foreign(till: LiedTo, more: int = 9) -> Rival:
    """A chain that has none of the blocks that the shop keeps, and more of them."""
    height = till.sandbox.chain.ledger.height
    return Rival(till, height - 40).add(40 + more)


def dribbling(seconds: float) -> Bad:
    def begin(till: LiedTo, released: threading.Event, hasty: float) -> None:
        chain = foreign(till)

        def instead(path: str) -> Reply | None:
            if page := re.fullmatch("/blocks(?:/([0-9]+))?", path):
                height = int(page[1] or chain.height)
                return slow(seconds / hasty, say([block_view(chain.blocks[height], height)]))
            return chain(path)

        till.liar.instead = instead

    return begin


def slow_by(seconds: float, pattern: str = "") -> Bad:
    """Each answer is true, and comes so late."""

    def begin(till: LiedTo, released: threading.Event, hasty: float) -> None:
        honest = till.liar._answer

        def instead(path: str) -> Reply | None:
            return slow(seconds / hasty, honest(path)) if re.search(pattern, path) else None

        till.liar.instead = instead

    return begin


def never(till: LiedTo, released: threading.Event, hasty: float) -> None:
    till.liar.instead = lambda _: silent(released)


def drips(till: LiedTo, released: threading.Event, hasty: float) -> None:
    till.liar.instead = lambda _: dripping(_HEAD % 4_000_000, b"0", released)


def floods(till: LiedTo, released: threading.Event, hasty: float) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[")
            while True:
                handler.wfile.write(b"[]," * 20_000)

    till.liar.instead = lambda _: reply


def hangs_amid_a_block(till: LiedTo, released: threading.Event, hasty: float) -> None:
    def instead(path: str) -> Reply | None:
        return dripping(_HEAD % 100_000 + bytes(70_000), b"", released) if "/raw" in path else None

    till.liar.instead = instead


def freezes(till: LiedTo, released: threading.Event, hasty: float) -> None:
    till.liar.instead = Rival(till)


def stopped_long_ago(till: LiedTo, released: threading.Event, hasty: float) -> None:
    till.liar.instead = Rival(till, till.sandbox.chain.ledger.height - 30)


def shows_foreign_headers(till: LiedTo, released: threading.Event, hasty: float) -> None:
    till.liar.instead = foreign(till)


def says_false_heights(till: LiedTo, released: threading.Event, hasty: float) -> None:
    till.liar.lies = {
        "^/blocks(/[0-9]+)?$": lambda page: [one | {"height": one["height"] + 7} for one in page],
        "^/blocks/tip/height$": lambda height: str(int(height) + 7),
    }


COINS = [{"txid": f"{number:064x}", "vout": 0, "is_coinbase": False} for number in range(100)]


def invented(txs: int, outputs: int = 1, **fields: Any) -> Callable[[str], Reply | None]:
    """At each page of an address so many new transactions with so many outputs to it each."""
    numbers = itertools.count(1)

    def instead(path: str) -> Reply | None:
        if not path.startswith("/address/"):
            return None
        script = script_of(path.split("/")[2], REGTEST).hex()
        paid = [{"scriptpubkey": script, "value": 330}] * outputs
        shown = [tx_of(next(numbers), script, vout=paid, **fields) for _ in range(txs)]
        return say(orjson.dumps(shown), **{"Content-Type": "application/json"})

    return instead


def invents_sightings(till: LiedTo, released: threading.Event, hasty: float) -> None:
    till.liar.instead = invented(148, vin=COINS)


OLD = "frozen 30 blocks ago"  # so that a new shop would begin with an old block
KINDS: dict[str, Bad] = {
    "headers that nobody else has, one a page, each after 19 s": dribbling(19),
    "each answer after 4 s": slow_by(4),
    "each answer after 19 s": slow_by(19),
    "each look after 19 s, the rest at once": slow_by(19, "^/address"),
    "silent": never,
    "a byte now and then": drips,
    "floods": floods,
    "hangs amid a block": hangs_amid_a_block,
    "frozen": freezes,
    OLD: stopped_long_ago,
    "headers that nobody else has, at once": shows_foreign_headers,
    "false heights": says_false_heights,
    "148 invented sightings a look": invents_sightings,
}
