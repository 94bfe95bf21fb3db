"""One bad explorer beside an honest one keeps no payment back, whichever is asked first.

tests/nightly/check/test_bad_sources.py measures the real process.
"""

import threading
import time

import pytest

from btcpay.chain.explorers.pool import Explorers
from tests.support.bad_sources import KINDS, go_bad
from tests.support.fake_esplora import slow

SOON_S = 12  # by itself each look takes less than one, and the machine may stand still


class Hasty(Explorers):
    """Waits a tenth of what the product waits."""

    hedge_s = Explorers.hedge_s / 10
    late_s = Explorers.late_s / 10


def check(till, *roots):
    """A run, and the seconds that it took."""
    began_s = time.monotonic()
    report = till.checker(explorers=till.explorers(*roots, kind=Hasty)).run()
    return report, time.monotonic() - began_s


@pytest.mark.parametrize(
    ("kind", "is_first"),
    [*((kind, True) for kind in KINDS), ("silent", False), ("frozen", False)],
    ids=lambda value: {True: "first", False: "second"}.get(value, value),
)
def test_one_bad_explorer_keeps_no_payment_back(
    till, open_liar, released, kind, is_first
):
    honest = open_liar(till)
    invoice = till.shop.invoice()
    go_bad(kind, till, released, 10)
    till.pay_in_block(invoice)
    roots = [till.liar.root, honest.root]
    report, took_s = check(till, *(roots if is_first else reversed(roots)))
    assert report.new_statuses == {invoice["id"]: "paid"} and not report.stuck_reason
    assert took_s < SOON_S
    waits, took_s = check(till, *(roots if is_first else reversed(roots)))
    assert waits.has_tip and not waits.stuck_reason and took_s < SOON_S


def test_an_honest_explorer_that_is_slow_is_waited_for_beside_a_frozen_one(
    till, open_liar
):
    """It takes longer than the other one, which has no news, but no longer than ten seconds."""
    honest = open_liar(till)
    invoice = till.shop.invoice()
    go_bad("frozen", till, threading.Event())
    till.pay_in_block(invoice)
    truth = honest._answer
    honest.instead = lambda path: slow(0.3, truth(path))
    report, _ = check(till, till.liar.root, honest.root)
    assert report.new_statuses == {invoice["id"]: "paid"}
