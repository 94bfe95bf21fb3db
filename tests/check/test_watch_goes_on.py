"""`check --watch` goes on after a run that failed, whatever the error: payments are found later."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.support.paths import PROJECT

pytestmark = pytest.mark.slow

FAILING = """
from btcpay.check import run as checks
real, errors = checks.Checker.run, [MemoryError(), RecursionError("too deep"), ValueError("odd")]

def run(self, ids=None):
    if errors:
        raise errors.pop()
    return real(self, ids)

checks.Checker.run = run
from btcpay.cli.main import main
main()
"""
PATIENCE_S = 120


def test_three_runs_that_fail_end_no_watch_and_the_fourth_finds_the_payment(open_tills):
    till = open_tills()
    invoice = till.shop.invoice()
    till.check()
    till.pay(invoice)
    till.mine()
    watching = subprocess.Popen(
        [sys.executable, "-c", FAILING, "check", "--watch", "1"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)}
        | till.shop.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until_s = time.monotonic() + PATIENCE_S
    while till.look(invoice)["status"] != "paid" and time.monotonic() < until_s:
        assert watching.poll() is None, watching.stderr.read()
        time.sleep(0.2)
    watching.send_signal(signal.SIGTERM)
    _, errors = watching.communicate(timeout=PATIENCE_S)
    assert till.look(invoice)["status"] == "paid", errors
    assert errors.count("the check failed") == 3 and "MemoryError" in errors
    assert watching.returncode == 0
