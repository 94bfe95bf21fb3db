"""Explorers that hold back as much as they can, each in its way; `KINDS` has them by name.

Each gets a till, of which `liar` is the explorer that shall be bad, and the event that ends its
silence; the times are those of the product's limits, divided by `hasty`. Its answers come instead
of the explorer's own.
"""

import contextlib
import itertools
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import orjson

from btcpay.bitcoin.address import script_of
from tests.support.builders import REGTEST
from tests.support.fake_esplora import (
    LiedTo,
    block_view,
    dripping,
    say,
    silent,
    slow,
    tx_of,
)
from tests.support.rival import Rival
from tests.support.serving import Reply

Instead = Callable[[str], Reply | None]
Bad = Callable[[LiedTo, threading.Event, float], Instead]

_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


def foreign(till: LiedTo) -> Rival:
    """A chain that has none of the blocks that the shop keeps, and more of them."""
    return Rival(till, till.sandbox.chain.ledger.height - 40).add(49)


def dribbling(till: LiedTo, after_s: float) -> Instead:
    chain = foreign(till)

    def instead(path: str) -> Reply | None:
        if page := re.fullmatch("/blocks(?:/([0-9]+))?", path):
            height = int(page[1] or chain.height)
            return slow(after_s, say([block_view(chain.blocks[height], height)]))
        return chain(path)

    return instead


def slow_by(seconds: float, pattern: str = "") -> Bad:
    """Each answer is true, and comes so late."""

    def begin(till: LiedTo, released: threading.Event, hasty: float) -> Instead:
        honest = till.liar._answer

        def instead(path: str) -> Reply | None:
            if not re.search(pattern, path):
                return None
            return slow(seconds / hasty, honest(path))

        return instead

    return begin


def flood(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    with contextlib.suppress(OSError):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[")
        while True:
            handler.wfile.write(b"[]," * 20_000)


def hanging(path: str, released: threading.Event) -> Reply | None:
    """Amid a block."""
    return (
        dripping(_HEAD % 100_000 + bytes(70_000), b"", released)
        if "/raw" in path
        else None
    )


def with_false_heights(till: LiedTo) -> Instead:
    till.liar.lies = {
        "^/blocks(/[0-9]+)?$": lambda page: [
            one | {"height": one["height"] + 7} for one in page
        ],
        "^/blocks/tip/height$": lambda height: str(int(height) + 7),
    }
    return lambda _path: None


COINS = [
    {"txid": f"{number:064x}", "vout": 0, "is_coinbase": False} for number in range(100)
]


def invented(txs: int, outputs: int = 1, **fields: Any) -> Instead:
    """At each page of an address so many new transactions with so many outputs to it each."""
    numbers = itertools.count(1)

    def instead(path: str) -> Reply | None:
        if not path.startswith("/address/"):
            return None
        script = script_of(path.split("/")[2], REGTEST).hex()
        paid = [{"scriptpubkey": script, "value": 330}] * outputs
        shown = [tx_of(next(numbers), script, vout=paid, **fields) for _ in range(txs)]
        headers: dict[str, Any] = {"Content-Type": "application/json"}
        return say(orjson.dumps(shown), **headers)

    return instead


OLD = "frozen 30 blocks ago"  # so that a new shop would begin with an old block
KINDS: dict[str, Bad] = {
    "headers that nobody else has, one a page, each after 19 s": (
        lambda till, _released, hasty: dribbling(till, 19 / hasty)
    ),
    "each answer after 4 s": slow_by(4),
    "each answer after 19 s": slow_by(19),
    "each look after 19 s, the rest at once": slow_by(19, "^/address"),
    "silent": lambda _till, released, _hasty: lambda _path: silent(released),
    "a byte now and then": (
        lambda _till, released, _hasty: (
            lambda _path: dripping(_HEAD % 4_000_000, b"0", released)
        )
    ),
    "floods": lambda _till, _released, _hasty: lambda _path: flood,
    "hangs amid a block": lambda _till, released, _hasty: (
        lambda path: hanging(path, released)
    ),
    "frozen": lambda till, _released, _hasty: Rival(till),
    OLD: lambda till, _released, _hasty: Rival(
        till, till.sandbox.chain.ledger.height - 30
    ),
    "headers that nobody else has, at once": lambda till, _released, _hasty: foreign(
        till
    ),
    "false heights": lambda till, _released, _hasty: with_false_heights(till),
    "148 invented sightings a look": lambda *_: invented(148, vin=COINS),
}


def go_bad(
    kind: str, till: LiedTo, released: threading.Event, hasty: float = 1
) -> None:
    till.liar.instead = KINDS[kind](till, released, hasty)
