"""`btcpay check --watch` beside nodes that announce: payments are seen between two runs."""

import time
from collections.abc import Iterator

import pytest
from builders import until
from fake_esplora import Terminal, Till
from fake_peer import FakePeer, chain_of

WITHIN_S = 15


@pytest.fixture
def peers(till: Till) -> Iterator[list[FakePeer]]:
    chain, now = chain_of(till), lambda: till.now
    with FakePeer(chain, now) as one, FakePeer(chain, now) as other:
        yield [one, other]


def test_eight_payments_are_seen_in_time_between_two_runs(
    till: Till, btcpay: Terminal, peers: list[FakePeer]
):
    till.mine()
    invoices = [till.shop.invoice() for _ in range(8)]
    environ = {
        "BTCPAY_EXPLORERS": "none",
        "BTCPAY_PEERS": ",".join(peer.place for peer in peers),
    }

    watching = btcpay.start("check", "--watch", "3600", **environ)
    try:
        until(lambda: "getheaders" in peers[0].asked, "the first run")
        assert not any(peer.listeners for peer in peers)
        till.open_page(*invoices)  # as a page that is loaded notes it
        until(lambda: all(peer.listeners for peer in peers), "somebody who listens")
        for some in (invoices[:1], invoices[1:]):
            began_s = time.monotonic()
            for invoice in some:
                tx = till.sandbox.chain.find(till.pay(invoice)).tx
                for peer in peers:
                    peer.announce(tx)
            until(lambda some=some: all(till.kinds(one) == ["seen"] for one in some), "them")
            assert time.monotonic() - began_s < WITHIN_S
        assert till.look(invoices[0])["status"] == "open"
    finally:
        watching.terminate()
        _, errors = watching.communicate(timeout=30)
    assert watching.returncode == 0 and "Traceback" not in errors
