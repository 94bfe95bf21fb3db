"""Measures blocks with many of our payments: `python apply.py ROOT URL FIRST COUNT...`.

Each COUNT is a block with so many payments, from the invoice FIRST on, read by the program of the
checkout ROOT. Prints the seconds of each.
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, sys.argv[1])

from blocks import block_of, coinbase, hash_of, payment
from fill import AMOUNT_SATS, script

from btcpay.bitcoin.tx import TxOut
from btcpay.check import read
from btcpay.check.report import Report
from btcpay.proofs.block import prove_block
from btcpay.settings import settings
from storage.database import open_database
from storage.queries import blocks


def block_for(numbers: Sequence[int], fresh: int) -> bytes:
    """A block that pays these invoices in full; `fresh` makes its transactions new ones."""
    paid = [payment(fresh + one, TxOut(AMOUNT_SATS, script(one))) for one in numbers]
    return block_of([coinbase(script_sig=fresh.to_bytes(8, "big")), *paid])


def main() -> None:
    url, first, *counts = sys.argv[2], *map(int, sys.argv[3:])
    read.receipt_prices = lambda *_: {"USD": Decimal("60000.00")}  # type: ignore[assignment]
    db = open_database(url)
    known = settings.read({"BTCPAY_NETWORK": "regtest", "BTCPAY_DATABASE_URL": url})
    reader: Any = read.Reader(
        db, known, SimpleNamespace(), SimpleNamespace(), lambda: datetime.now(UTC)
    )
    for count in counts:
        raw = block_for(range(first, first + count), first)
        first += count
        proven = prove_block(raw, hash_of(raw))
        height = (blocks.tip_height(db) or 0) + 1
        with db.connected():
            db.connection.execute_sql(
                "INSERT INTO block (height, hash, header, mined_at) VALUES (%s, %s, %s, %s)",
                (height, hash_of(raw), raw[:80], int(time.time() * 1000)),
            )
        row = db.rows(blocks.NEWEST, now=int(time.time() * 1000), limit=1)[0]
        fetched: Future[Any] = Future()
        fetched.set_result((proven, "measured"))
        report = Report()
        began_s = time.monotonic()
        assert reader._read(row, report, fetched)
        assert not report.failed, report.failed
        print(time.monotonic() - began_s, flush=True)


if __name__ == "__main__":
    main()
