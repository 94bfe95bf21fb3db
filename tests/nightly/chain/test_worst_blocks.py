"""The worst blocks that consensus allows, four megabytes each, do not end a run."""

import resource
import time
from dataclasses import dataclass
from itertools import count

import pytest

from btcpay.bitcoin.header import build_header, parse_header
from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.sandbox.node.block import BITS, VERSION
from btcpay.sandbox.node.script import script_of
from tests.support.blocks import WORST
from tests.support.rival import Rival


@dataclass
class Heavy:
    """A block of given bytes after another, as an explorer shows it."""

    previous: str
    time: int
    raw: bytes = b""
    nonce: int = 0
    version: int = VERSION
    bits: int = BITS
    weight: int = 4_000_000
    txs: tuple = ()

    @classmethod
    def on(cls, rival, raw):
        made = cls(rival.blocks[-1].hash, rival.till.now)
        made.merkle_root = parse_header(raw[:80]).merkle_root
        fields = made.version, made.previous, made.merkle_root, made.time, made.bits
        for made.nonce in count():
            made.header = build_header(*fields, made.nonce)
            if parse_header(made.header).has_work:
                break
        made.raw, made.hash = made.header + raw[80:], parse_header(made.header).hash
        return made


@pytest.mark.parametrize("name", WORST)
def test_a_run_reads_the_worst_block_and_the_payment_after_it(lied_to, name):
    till = lied_to()
    invoice = till.shop.invoice()
    assert till.check().complete
    txid = till.pay(invoice)
    waiting = till.sandbox.chain.mempool.entries[txid].tx
    rival = Rival(till)
    rival.blocks.append(Heavy.on(rival, WORST[name]()))
    till.liar.instead = rival.add(1, [waiting])
    before_s = time.process_time()
    before_kb = memory_kb()
    report = till.check()
    assert (
        report.complete
        and report.new_statuses == {invoice["id"]: "paid"}
        and report.blocks_read == 2
    )
    assert report.read_bytes > 60_000
    # Twice what is expected on a busy machine: nothing that grows with the square passes.
    assert time.process_time() - before_s < 10
    assert memory_kb() - before_kb < 400_000


def memory_kb():
    """The most that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def spending(number, *outputs):
    origin = TxIn(Outpoint(f"{number:064x}", 0), b"", 0xFFFFFFFF)
    return Tx(2, (origin,), outputs, 0)


@pytest.mark.parametrize(
    ("txs", "outputs"), [(1, 30_000), (1_000, 1)], ids=["one", "many"]
)
def test_a_block_of_dust_to_one_of_our_addresses_is_kept(lied_to, txs, outputs):
    """A whole block of it by one transaction: ugly, paid for by whoever sends it, and soon read."""
    till = lied_to()
    invoice = till.shop.invoice()
    dust = [TxOut(600, script_of(invoice["deposit_address"]))] * outputs
    till.liar.instead = Rival(till).add(
        1, [spending(number, *dust) for number in range(txs)]
    )
    before_s = time.process_time()
    report = till.check()
    assert report.complete and report.new_statuses == {invoice["id"]: "paid"}
    assert till.balance() == (txs * outputs * 600,) * 2
    assert time.process_time() - before_s < 10
    before_s = time.process_time()
    till.liar.instead.add()
    assert till.check().complete
    assert time.process_time() - before_s < 2
