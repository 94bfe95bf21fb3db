"""One bad explorer of every kind beside an honest one: seconds from a block to its payment, memory.

The real `blocktill check`, begun when the block is mined. docs/operators/budget.md has the times.
"""

import threading
import time

import pytest

from storage.queries import invoices
from tests.support.bad_sources import KINDS, OLD, go_bad
from tests.support.fake_esplora import LiedTo
from tests.support.measured import check

MOST_S = 60
MOST_MB = 200
LOOKING = 6


def paid_after_s(till, invoice, found):
    """Adds the seconds until it is paid; the test's bound ends the wait."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < 2 * MOST_S:
        if till.shop.service.db.get(invoices.WHOLE, id=invoice["id"]).status == "paid":
            found.append(time.monotonic() - began_s)
            break
        time.sleep(0.1)
    till.shop.service.db.close()


@pytest.mark.parametrize("kind", ["honest", *KINDS])
def test_a_payment_is_counted_within_a_minute_of_its_block(
    lied_to, tmp_path, released, kind
):
    till: LiedTo = lied_to(honest_too=True, has_begun=False)
    till.shop.invoice()
    assert kind == OLD or till.check().complete
    till.open_page(*(till.shop.invoice() for _ in range(LOOKING)))
    invoice = till.shop.invoice()
    if kind in KINDS:
        go_bad(kind, till, released)
    till.pay(invoice)
    till.mine()
    found: list[float] = []
    waiting = threading.Thread(target=paid_after_s, args=(till, invoice, found))
    waiting.start()
    report, peak_mb = check(till, tmp_path)
    waiting.join()
    began_s = time.monotonic()
    idle, idle_mb = check(till, tmp_path)
    idle_s = time.monotonic() - began_s
    print(
        f"| {kind} | {found[0]:.1f} s | {idle_s:.1f} s | {max(peak_mb, idle_mb):.0f} MB |"
    )
    assert found[0] < MOST_S and idle_s < MOST_S and max(peak_mb, idle_mb) < MOST_MB
    assert report["changed"] == {invoice["id"]: "paid"} and not (
        report["stuck"] or idle["stuck"]
    )
