"""The peak memory of `blocktill check --watch` while colluding peers flood it."""

import itertools
import re
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.bitcoin.wire import hash_from_hex
from btcpay.parts.peers.messages import TX, getdata_body, message
from tests.support.builders import REGTEST, clean_environ, until
from tests.support.fake_peer import FakePeer, chain_of
from tests.support.paths import PROJECT

MOST_MB = 200
FLOODING = 4


def wide(number):
    """Pays 12,000 scripts that could be ours, none twice."""
    scripts = (
        b"\x00\x14" + (number << 20 | n).to_bytes(20, "big") for n in range(12_000)
    )
    coin = TxIn(Outpoint(f"{number + 1:064x}", 0), b"", 0)
    return Tx(2, (coin,), tuple(TxOut(1000, script) for script in scripts), 0)


def long(number):
    """Spends 9,000 coins."""
    coins = tuple(TxIn(Outpoint(f"{number + 1:064x}", n), b"", 0) for n in range(9_000))
    return Tx(2, coins, (TxOut(1000, b"\x00\x14" + bytes(20)),), 0)


def ids(number):
    """Announces 50,000."""
    first = (number + 1) << 20
    hashes = [(first | n).to_bytes(32, "big") for n in range(50_000)]
    return sent("inv", getdata_body(TX, hashes))


def announced(tx):
    return sent("inv", getdata_body(TX, [hash_from_hex(tx.txid)])) + sent("tx", tx.raw)


def sent(command, body):
    return message(REGTEST.magic, command, body)


class Flood:
    """What all the peers send, made once; it goes on without end."""

    def __init__(self, make, differing=10**6):
        self._make = make
        self._differing = differing
        self._made = []
        self._lock = threading.Lock()

    def __iter__(self):
        return map(self._nth, itertools.count())

    def _nth(self, number):
        number %= self._differing
        with self._lock:
            if number == len(self._made):
                self._made.append(self._make(number))
        return self._made[number]


FLOODS = {
    "ids": (ids,),
    "scripts": (lambda number: announced(wide(number)), 80),
    "coins": (lambda number: announced(long(number)), 80),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_listening_takes_less_than_200_mb_and_a_payment_is_seen_meanwhile(
    till, tmp_path, flood
):
    log = tmp_path / "log"
    made = Flood(*flood)

    def floods(peer, sock, command, body):
        if command == "verack" and sock in peer.listeners:
            for each in made:
                sock.sendall(each)
        return False

    till.mine()
    invoice = till.shop.invoice()
    till.open_page(invoice)
    with ExitStack() as stack, log.open("wb") as stderr:
        peers = [
            stack.enter_context(FakePeer(chain_of(till), lambda: till.now))
            for _ in range(FLOODING + 2)
        ]
        honest = peers[FLOODING:]
        for peer in peers[:FLOODING]:
            peer.bad = floods
        environ = {
            "BLOCKTILL_EXPLORERS": "none",
            "BLOCKTILL_PEERS": ",".join(peer.place for peer in peers),
            "PYTHONPATH": str(PROJECT),
        }
        watching = subprocess.Popen(
            [sys.executable, "-m", "btcpay", "check", "--watch", "3600"],
            env=clean_environ(**(till.shop.environ | environ)),
            stderr=stderr,
        )
        stack.callback(watching.wait)
        stack.callback(watching.terminate)
        left = b"sends much more than there can be"
        until(
            lambda: log.read_bytes().count(left) >= FLOODING,
            "floods that are left",
            300,
        )
        until(lambda: all(peer.listeners for peer in honest), "the others")
        tx = till.sandbox.chain.find(till.pay(invoice)).tx
        for peer in honest:
            peer.announce(tx)
        until(lambda: till.kinds(invoice) == ["seen"], "the payment")
        status = Path(f"/proc/{watching.pid}/status").read_text()
    (peak_kb,) = re.findall(r"VmHWM:\s+([0-9]+) kB", status)
    print(f"peak: {int(peak_kb) / 1024:.0f} MB")
    assert int(peak_kb) / 1024 < MOST_MB
