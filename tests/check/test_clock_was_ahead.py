"""What waits by the clock does not wait for years, where the clock was ahead when it began to."""

from datetime import timedelta

import pytest

from btcpay.invoices.part_work import Work, note_failure
from btcpay.values.times import to_ms
from storage.queries import part_work

pytestmark = pytest.mark.both_databases
HOUR = timedelta(hours=1)


def test_a_block_that_nobody_showed_while_the_clock_was_ahead_is_read_once_it_is_right(
    lied_to, clock
):
    till = lied_to()
    invoice = till.pay_in_block()
    till.mine()
    till.liar.lies = {"/raw$": lambda _: b"nothing"}
    clock.move(days=365)
    assert till.check().blocks_behind

    clock.move(days=-365)
    till.liar.lies = {}
    assert till.check().new_statuses == {invoice["id"]: "paid"}


def test_work_that_failed_while_the_clock_was_ahead_is_due_once_it_is_right(
    shop, clock
):
    db = shop.service.db
    now = clock()
    for hours in (-1, 0.5, 24 * 365):
        at = now + hours * HOUR
        note_failure(
            db, Work("refunds", "block", int(hours) + 10), ValueError("odd"), at
        )
    rows = db.rows(part_work.DUE, kind="block", now=to_ms(now), limit=9)
    assert [row.height for row in rows] == [9, 24 * 365 + 10]
