"""What one stranger can put into a block, and a real check with little memory: others are paid."""

import json
import os
import resource
import subprocess
import sys

from btcpay.bitcoin.tx import TxOut
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.coins import choose
from tests.support.paths import PROJECT
from tests.support.shop_refunds import address, made, paid

LIMIT_BYTES = 512 * 1024**2
OUTPUTS = 3_200
DUST_LIMITS_SATS = 294


def check_with(environ, limit_bytes=LIMIT_BYTES):
    """The answer of a real check whose memory is limited."""
    ended = subprocess.run(
        [sys.executable, "-m", "btcpay", "check", "--once", "--json"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)} | environ,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (limit_bytes, limit_bytes)
        ),
    )
    assert ended.stdout, ended.stderr
    return json.loads(ended.stdout)


def fill(till, script, outputs=OUTPUTS, sats=DUST_LIMITS_SATS):
    """One transaction of so many outputs to one script."""
    wallet = till.sandbox.wallet
    fee_sats = 250_000
    coins = choose(wallet.coins(), outputs * sats + fee_sats)
    paying = wallet.build(coins, [TxOut(sats, script)] * outputs, fee_sats)
    till.sandbox.chain.accept(paying, till.now)


def test_the_payer_of_one_refund_fills_a_block_and_another_customer_is_paid(open_tills):
    till = open_tills()
    refund = made(till, paid(till), to=address(1))
    till.mine_and_check()
    invoice = till.shop.invoice()
    fill(till, script_of(refund.address))
    till.pay(invoice)
    till.mine()
    run = check_with(till.shop.environ)
    assert run["changed"] == {invoice["id"]: "paid"}


def test_the_payer_of_one_invoice_fills_a_block_and_another_customer_is_paid(
    open_tills,
):
    till = open_tills()
    odd = till.shop.invoice()
    invoice = till.shop.invoice()
    till.check()
    fill(till, script_of(odd["deposit_address"]))
    till.pay(invoice)
    till.mine()
    run = check_with(till.shop.environ)
    assert run["changed"][invoice["id"]] == "paid"
