"""`btcpay check --watch` beside nodes that announce: payments are seen between two runs."""

import json

from builders import until
from fake_peer import FakePeer, chain_of
from samples import figures

from btcpay.sandbox.payer.misbehave import replace

WITHIN_S = 30  # after one, on a machine that has time; 15 are promised


def test_payments_are_seen_in_time_between_two_runs_and_one_is_taken_back(till, btcpay, peers):
    till.mine()
    invoices = [till.shop.invoice() for _ in range(8)]
    environ = {"BTCPAY_EXPLORERS": "none", "BTCPAY_PEERS": ",".join(peer.place for peer in peers)}

    paid = {}

    def announced(*some):
        for invoice in some:
            paid[invoice["id"]] = till.pay(invoice)
            for peer in peers:
                peer.announce(till.sandbox.chain.find(paid[invoice["id"]]).tx)
        until(lambda: all(till.kinds(one) == ["seen"] for one in some), "payments", WITHIN_S)

    watching = btcpay.start("check", "--watch", "3600", **environ)
    try:
        until(lambda: "getheaders" in peers[0].asked, "the first run")
        assert not any(peer.listeners for peer in peers)
        till.open_page(*invoices)  # as a page that is loaded notes it
        until(lambda: all(peer.listeners for peer in peers), "somebody who listens")
        until(lambda: figures(till.shop)["btcpay_listens"] == 1, "the end of the first run")
        for some in (invoices[:1], invoices[1:7]):
            announced(*some)
        # A double spend counts as little as anything else that one alone announces.
        away = replace(till.sandbox.wallet, till.now, paid[invoices[0]["id"]], away=True)
        peers[0].announce(till.sandbox.chain.find(away).tx)
        announced(invoices[7])
        assert till.kinds(invoices[0]) == ["seen"]
        peers[1].announce(till.sandbox.chain.find(away).tx)
        until(lambda: till.kinds(invoices[0]) == ["seen", "vanished"], "the double spend", WITHIN_S)
        assert till.look(invoices[0])["status"] == "open"
    finally:
        watching.terminate()
        _, errors = watching.communicate(timeout=30)
    assert watching.returncode == 0 and "Traceback" not in errors


def test_a_check_that_does_not_listen_says_so_where_no_explorer_is_asked(till, btcpay):
    with FakePeer(chain_of(till), lambda: till.now) as peer:
        environ = {"BTCPAY_EXPLORERS": "none", "BTCPAY_PEERS": peer.place}
        said = "`btcpay check --watch` would listen to peers"
        assert said in btcpay.run("check", **environ)[1]
        assert btcpay.run("check", "--quiet", **environ) == ("", "")
        answer, errors = btcpay.run("check", "--json", BTCPAY_PEERS=peer.place)
        assert json.loads(answer)["listens"] is False and said not in errors
