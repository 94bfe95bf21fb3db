"""`blocktill check --watch` beside nodes that announce: payments are seen between two runs."""

import dataclasses
import json
from contextlib import ExitStack

from btcpay.check.announcements import open_announcements
from btcpay.check.report import Report
from btcpay.sandbox.payer.wallet import replace
from tests.support.builders import until
from tests.support.fake_peer import FakePeer, chain_of, deafen
from tests.support.samples import figures

WITHIN_S = 30  # after one, on a machine that has time; 15 are promised


def said_so(*peers):
    """Everything that these announced was read: a ping that came after it is answered."""
    before = [peer.asked.count("pong") for peer in peers]
    for peer in peers:
        peer.send(peer.listeners[0], "ping", bytes(8))

    def answered():
        return all(
            peer.asked.count("pong") > n for peer, n in zip(peers, before, strict=True)
        )

    until(answered, "what is said")


def test_payments_are_seen_in_time_between_two_runs_and_one_is_taken_back(
    till, blocktill, peers
):
    till.mine()
    invoices = [till.shop.invoice() for _ in range(8)]
    environ = {
        "BLOCKTILL_EXPLORERS": "none",
        "BLOCKTILL_PEERS": ",".join(peer.place for peer in peers),
    }

    paid = {}

    def announced(*some):
        for invoice in some:
            paid[invoice["id"]] = till.pay(invoice)
            for peer in peers:
                peer.announce(till.sandbox.chain.find(paid[invoice["id"]]).tx)
        until(
            lambda: all(till.kinds(one) == ["seen"] for one in some),
            "payments",
            WITHIN_S,
        )

    watching = blocktill.start("check", "--watch", "3600", **environ)
    try:
        until(lambda: "getheaders" in peers[0].asked, "the first run")
        until(
            lambda: figures(till.shop)["blocktill_listens"] == 1,
            "the end of the first run",
        )
        until(lambda: all(peer.listeners for peer in peers), "somebody who listens")
        early = till.pay(invoices[0])  # before anybody looks
        for peer in peers:
            peer.announce(till.sandbox.chain.find(early).tx)
        said_so(*peers)
        assert till.kinds(invoices[0]) == []
        till.open_page(*invoices)  # as a page that is loaded notes it
        until(lambda: till.kinds(invoices[0]) == ["seen"], "an early payment", WITHIN_S)
        paid[invoices[0]["id"]] = early
        announced(*invoices[1:7])
        # A double spend counts as little as anything else that one alone announces.
        away = replace(
            till.sandbox.wallet, till.now, paid[invoices[0]["id"]], away=True
        )
        peers[0].announce(till.sandbox.chain.find(away).tx)
        announced(invoices[7])
        assert till.kinds(invoices[0]) == ["seen"]
        peers[1].announce(till.sandbox.chain.find(away).tx)
        until(
            lambda: till.kinds(invoices[0]) == ["seen", "vanished"],
            "the double spend",
            WITHIN_S,
        )
        assert till.look(invoices[0])["status"] == "open"
    finally:
        watching.terminate()
        _, errors = watching.communicate(timeout=30)
    assert watching.returncode == 0 and "Traceback" not in errors


def test_two_liars_of_eight_erase_nothing_and_more_than_announce_it_do(till):
    invoice = till.shop.invoice()
    till.open_page(invoice)
    chain = till.sandbox.chain
    with ExitStack() as stack:
        opened = (FakePeer(chain_of(till), lambda: till.now) for _ in range(8))
        peers = [stack.enter_context(peer) for peer in opened]
        settings = dataclasses.replace(
            till.settings, peers=tuple(peer.place for peer in peers)
        )
        listening = open_announcements(settings, till.shop.service.db, till.clock)
        stack.callback(deafen, listening.listener)
        assert not listening.collect()
        until(lambda: all(peer.listeners for peer in peers), "the greetings")

        def announced(txid, *by):
            for peer in by:
                peer.announce(chain.find(txid).tx)
            said_so(*by)

        def applied():
            listening.apply(Report())
            return till.kinds(invoice)

        first = till.pay(invoice)
        announced(first, *peers[:6])
        until(lambda: applied() == ["seen"], "a payment")
        other = replace(till.sandbox.wallet, till.now, first, away=True)
        for some in (
            peers[6:],
            peers[:1],
            peers[1:2],
        ):  # then as many as stay with the first
            announced(other, *some)
            until(listening.collect, "what they announce")
            assert applied() == ["seen"]
        announced(other, peers[2])
        until(lambda: applied() == ["seen", "vanished"], "the majority")


def test_a_check_that_ends_says_that_it_does_not_listen(till, blocktill):
    with FakePeer(chain_of(till), lambda: till.now) as peer:
        answer, _ = blocktill.run("check", "--json", BLOCKTILL_PEERS=peer.place)
        assert json.loads(answer)["listens"] is False
