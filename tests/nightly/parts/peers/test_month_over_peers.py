"""A month away: 4,320 blocks are followed and read over a peer, two thousand headers a message."""

import time

from btcpay.check import block_reader, run
from btcpay.parts.peers import peer as peers_own
from storage.queries import blocks
from tests.support.fake_peer import FakePeer, chain_of, over_peers

MONTH = 4320


def test_a_month_of_blocks_is_read_in_one_run(till, monkeypatch):
    """In the seconds that a run has, of processor time: the machine may be busy."""
    most_s = block_reader.MOST_S
    for module, name in (
        (block_reader, "MOST_S"),
        (peers_own, "MOST_CHAIN_S"),
        (run, "MOST_RUN_S"),
    ):
        monkeypatch.setattr(module, name, 900.0)
    db = till.shop.service.db
    with FakePeer(chain_of(till), lambda: till.now) as peer:
        invoice = till.shop.invoice()
        assert over_peers(till, peer.place).run().complete
        till.pay(invoice)
        for _ in range(MONTH // 720):
            till.mine(720)
        began_s = time.process_time()
        report = over_peers(till, peer.place).run()
        took_s = time.process_time() - began_s
    assert took_s < most_s
    assert report.blocks_read == MONTH and report.complete
    assert report.new_statuses == {invoice["id"]: "paid"}
    assert db.get(blocks.UNREAD)[0] == 0
