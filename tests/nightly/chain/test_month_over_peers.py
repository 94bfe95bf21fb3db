"""A month away: 4,320 blocks are followed and read over a peer, two thousand headers a message."""

from dataclasses import replace

from fake_peer import FakePeer, chain_of

from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.peers.pool import Peers
from btcpay.http import http_client
from storage.queries import blocks

MONTH = 4320


def test_a_month_of_blocks_is_read_in_one_run(till):
    db, network = till.shop.service.db, till.settings.network
    with FakePeer(chain_of(till), lambda: till.now) as peer:

        def check():
            checker = till.checker(explorers=Explorers(network, (), http_client.Session()))
            settings = replace(checker.settings, explorers=(), peers=(peer.place,))
            peers = Peers(network, [peer.place], db.close)
            return replace(checker, settings=settings, peers=peers).run()

        invoice = till.shop.invoice()
        assert check().complete
        till.pay(invoice)
        for _ in range(MONTH // 720):
            till.mine(720)
        report = check()
    assert report.blocks == MONTH and report.complete
    assert report.changed == {invoice["id"]: "paid"}
    assert db.only(blocks.UNREAD)["blocks"] == 0
