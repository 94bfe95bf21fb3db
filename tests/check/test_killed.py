"""Smokes of `tests/nightly/check/`: a random life, and checks that are killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builders import Clock, TickerServer, clean_environ
from fake_esplora import open_till
from paths import PROJECT
from random_life import live

pytestmark = pytest.mark.both_databases

DYING = """
import sys
from dying import die_before
die_before(int(sys.argv.pop(1)))
from btcpay.cli.main import main
main()
"""


@pytest.mark.parametrize("moment", [2, 5])
def test_a_check_that_is_killed_is_finished_by_the_next(
    tmp_path: Path, ticker: TickerServer, clock: Clock, moment: int
) -> None:
    with open_till(tmp_path, ticker, clock) as till:
        invoice = till.shop.invoice()
        till.pay(invoice)
        till.mine()
        environ = till.shop.environ | {"PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests' / 'support'}"}
        died = subprocess.run(
            [sys.executable, "-c", DYING, str(moment), "check"], env=clean_environ(**environ)
        )
        assert died.returncode == -signal.SIGKILL
        assert till.check().complete and till.look(invoice)["status"] == "paid"
        assert len(till.payments()) == 1 == till.kinds(invoice).count("paid")


def test_a_random_life_of_shop_and_chain(ticker: TickerServer, tmp_path: Path) -> None:
    live(ticker, tmp_path, 1, 0)
