"""Smokes of `tests/nightly/check/`: a random life, and checks that are killed."""

import pytest
from dying import run_until_death
from fake_esplora import Terminal, open_till

pytestmark = pytest.mark.both_databases


@pytest.mark.parametrize("moment", [2, 5])
def test_a_check_that_is_killed_is_finished_by_the_next(tmp_path, ticker, clock, moment):
    with open_till(tmp_path, ticker, clock, has_begun=False) as till:
        invoice = till.shop.invoice()
        till.pay(invoice)
        till.mine()
        run_until_death(moment, "check", **till.shop.environ)
        assert "skipped" not in Terminal(till).json("check")
        assert till.look(invoice)["status"] == "paid"
        assert len(till.payments()) == 1 == till.kinds(invoice).count("paid")
