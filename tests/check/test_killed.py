"""Smokes of `tests/nightly/check/`: a random life, and checks that are killed."""

import signal
import subprocess
import sys

import pytest
from builders import clean_environ
from fake_esplora import open_till
from paths import PROJECT

pytestmark = pytest.mark.both_databases

DYING = """
import sys
from dying import die_before
die_before(int(sys.argv.pop(1)))
from btcpay.cli.main import main
main()
"""


@pytest.mark.parametrize("moment", [2, 5])
def test_a_check_that_is_killed_is_finished_by_the_next(tmp_path, ticker, clock, moment):
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
