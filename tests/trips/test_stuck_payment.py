"""A payment that no block takes: what its payer and the shop are told, and from when on."""

import pytest

from btcpay.invoices.stuck import Stuck, stuck_of
from storage.models import Output
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.payer import Page

MINUTE_MS = 60_000


@pytest.fixture
def till(open_tills):
    return open_tills(**ON)


def payers_page(till, invoice, language="en"):
    answer = till.shop.client.get(f"/pay/{invoice['id']}?lang={language}")
    return Page(answer.text).texts


def merchants_page(till, invoice):
    browser = MerchantBrowser(till.shop).log_in()
    return browser.page(f"/invoices/{invoice['id']}")


def waiting(minutes_ago, now, feerate=None):
    first_seen_ms = round(now.timestamp() * 1000) - minutes_ago * MINUTE_MS
    return Output(first_seen_ms=first_seen_ms, feerate=feerate)


def test_a_payment_is_stuck_from_an_hour_on(clock):
    now = clock()
    assert stuck_of([], now) is None
    assert stuck_of([waiting(59, now)], now) is None
    assert stuck_of([waiting(60, now, 1_500)], now) == Stuck(1, 1_500)
    two = [waiting(61, now, 9_000), waiting(200, now)]
    assert stuck_of(two, now) == Stuck(3, None)


def test_both_are_told_what_each_can_do_until_a_block_takes_it(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.look_for(invoice)
    assert "stuck" not in payers_page(till, invoice)
    page = merchants_page(till, invoice)
    assert "stuck" not in page.texts and " sat/vB" in page.source
    till.clock.move(hours=2, minutes=59)
    till.look_for(invoice)
    page = payers_page(till, invoice)
    told = page["stuck"]
    assert "you can close this page" not in page["words"]
    assert "been waiting for a block for 2\xa0h" in told and " sat/vB" in told
    assert "sat/vB. It is not lost: please do not send it again" in " ".join(
        told.split()
    )
    assert "Child pays for parent" in merchants_page(till, invoice).texts["stuck"]
    assert "sat/vB" in payers_page(till, invoice, "de")["stuck"]
    till.mine()
    till.check()
    assert "stuck" not in payers_page(till, invoice)
    page = merchants_page(till, invoice)
    assert "stuck" not in page.texts and " sat/vB" not in page.source
