"""What a block costs: real blocks, proven and applied, in a shop with many addresses."""

import resource
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from blocks import REAL, real_block
from builders import TickerServer
from fill import fill

from btcpay.bitcoin.block import scan_block
from btcpay.chain.follow import add_header
from btcpay.chain.sources import UNLIMITED
from btcpay.check.read import Reader
from btcpay.check.report import Report
from btcpay.prices.price import new_prices
from btcpay.proofs.block import prove_block
from btcpay.settings import settings
from btcpay.values.times import utc_now
from storage.database import Database, open_database
from storage.queries.totals import balances

ROUNDS = 9


class OneBlock:
    """In place of the explorers: what is measured is not the network."""

    host = "bench"

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def ask(self, question: Callable[[Any], Any], by_turns: bool) -> Any:
        return question(self)

    def raw_block(self, _hash: str) -> bytes:
        return self._raw

    def allowance(self) -> Any:
        return UNLIMITED


def measure(
    db: Database, environ: dict[str, str], name: str, height: int, paid: int
) -> tuple[float, ...]:
    """Processor milliseconds, the best of some rounds: to scan, to prove, and for all of it.

    `paid`: how many of its payments are to us.
    """
    raw, shop = real_block(name), settings.read(environ)
    reader = Reader(db, shop, OneBlock(raw), new_prices(shop), utc_now)  # type: ignore[arg-type]
    scan_ms, prove_ms, read_ms = [], [], []
    for number in range(ROUNDS):
        began = time.process_time()
        scan_block(raw)
        scan_ms.append(time.process_time() - began)
        began = time.process_time()
        proven = prove_block(raw, REAL[name])
        prove_ms.append(time.process_time() - began)
        if number == 0:
            for place, script in enumerate(list(proven.parts.paid)[:paid]):
                db.connection.execute_sql(
                    "UPDATE invoice SET script = ? WHERE address_index = ?",
                    (script.hex(), 8 * (height % 1000 + place) + 4),
                )
        with db.write():
            db.connection.execute_sql("DELETE FROM block")
            add_header(db, height + number, raw[:80])
        report = Report()
        began = time.process_time()
        reader.read_all(report)
        read_ms.append(time.process_time() - began)
        assert report.blocks == 1
    return tuple(1000 * min(times) for times in (scan_ms, prove_ms, read_ms))


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btcpay-bench-")))
        ticker = stack.enter_context(TickerServer())
        for issued in (1_000, 50_000, 500_000):
            url = fill(folder / f"{issued}.db", issued)
            environ = {"BTCPAY_DATABASE_URL": url, "BTCPAY_PRICE_SOURCES": f"{ticker.url}#/usd"}
            db = open_database(url)
            db.run(balances.OPEN, merchant_id=1)
            for place, name in enumerate(REAL):
                for paid in (0, 20):
                    figures = measure(db, environ, name, 1_000 * (place + 1), paid)
                    scan, prove, whole = figures
                    print(
                        f"{issued:7} issued, block {name:8} {len(real_block(name)) / 1e6:.2f} MB:"
                        f" scan {scan:5.1f} ms, with proof {prove:5.1f} ms, read and applied with"
                        f" {paid:2} payments {whole:5.1f} ms"
                    )
            db.close()
        for name in REAL:
            raw = real_block(name)
            tracemalloc.start()
            prove_block(raw, REAL[name])
            print(f"memory beside block {name}: {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB")
            tracemalloc.stop()
    print(f"peak of all {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
