"""The file by which a wallet pays many refunds: what Electrum and Sparrow read of it."""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from btcpay.parts.refunds.models import Refund
from btcpay.parts.refunds.pay_many import lines_of
from btcpay.values.money import SATS_PER_BTC
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.shop_refunds import address, made, paid, send, sent

MOST_SATS = 100_000 * SATS_PER_BTC


@pytest.fixture
def till(open_tills):
    return open_tills(**ON)


@pytest.fixture
def browser(till):
    return MerchantBrowser(till.shop).log_in()


def file(browser):
    answer = browser.get("/refunds/pay-many")
    assert answer.status_code == 200 and answer.mimetype == "text/csv"
    assert "attachment" in answer.headers["Content-Disposition"]
    return answer.text


@given(st.integers(1, MOST_SATS))
@example(29)
@example(4_350_001)
def test_both_wallets_read_exactly_the_satoshis(sats):
    """They multiply as these lines do: Electrum's parse_amount, Sparrow's SendToManyDialog."""
    line = lines_of([Refund(address=address(1), amount_sats=sats)])
    to, amount = line.removesuffix("\n").split(",")
    assert to == address(1)
    by_electrum = int(10**8 * Decimal(amount))
    by_sparrow = int(float(amount) * 100_000_000)
    assert by_electrum == by_sparrow == sats


def test_the_file_has_what_is_to_be_sent_and_nothing_else(till, browser):
    invoice = paid(till)
    one = made(till, invoice, 10_000, address(1))
    assert "pay-many" not in browser.page("/refunds").source
    made(till, invoice, 5_000, address(2))
    made(till, invoice, 4_000)
    page = browser.page("/refunds").source
    assert "Send 2 refunds by one transaction" in page and "0.00015000" in page
    assert file(browser) == f"{address(1)},0.000100001\n{address(2)},0.000050001\n"
    sent(till, one)
    assert file(browser) == f"{address(2)},0.000050001\n"


def test_a_refund_that_may_be_sent_already_is_left_out(till, browser):
    invoice = paid(till)
    one = made(till, invoice, 10_000, address(1))
    made(till, invoice, 5_000, address(2))
    send(till, one, 9_700)
    till.mine_and_check()
    page = browser.page("/refunds").source
    assert "was it this?" in page and "pay-many" not in page
    assert file(browser) == f"{address(2)},0.000050001\n"


def test_nobody_else_gets_the_file(till, browser):
    made(till, paid(till), 10_000, address(1))
    other = MerchantBrowser(till.shop)
    assert other.get("/refunds/pay-many").status_code != 200
