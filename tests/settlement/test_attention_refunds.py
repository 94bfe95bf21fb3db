"""Attention that a refund answers is set aside by it; money that is sent back twice needs it. Pure.

100,000 satoshis are asked; 294 is the least that can be sent to the address.
"""

from dataclasses import replace

import pytest
from test_attention import ASKED, got, paid_by

from btcpay.settlement.attention import Happening, reason_for, stake_sats
from btcpay.settlement.values import Invoice, Verdict

OF = {"sent": "refund sent", "again": "refund sent again", "undone": "refund undone"}


def happened(words):
    """`payment:aa sent:ff=500 undone:ff=500 dismissed` as values."""
    found = (word.replace("=", ":").split(":") for word in words.split())
    parts = (([*one, "", "0"] if len(one) < 2 else [*one, "0"])[:3] for one in found)
    return [Happening(OF.get(kind, kind), txid, int(sats)) for kind, txid, sats in parts]


def row(sentence, reason, status, words, *receipts, stake=0):
    return pytest.param(reason, status, words, receipts, stake, id=sentence)


CASES = [
    row("too much, and the excess was sent back", None, "paid", "payment:aa paid sent:ff=5000",
        paid_by(ASKED + 5_000)),
    row("too much, and less than can be sent is left", None, "paid",
        "payment:aa paid sent:ff=4707", paid_by(ASKED + 5_000)),
    row("too much, and a part of it was sent back", "too_much", "paid",
        "payment:aa paid sent:ff=4706", paid_by(ASKED + 5_000), stake=294),
    row("too much, sent back in two parts", None, "paid",
        "payment:aa paid sent:ff=2000 sent:ee=3000", paid_by(ASKED + 5_000)),
    row("too much, sent back, and then more came", "too_much", "paid",
        "payment:aa paid sent:ff=5000 payment:bb", paid_by(ASKED + 5_000), got(700, "bb"),
        stake=700),
    row("too much, sent back, and a reorganisation took that back", "too_much", "paid",
        "payment:aa paid sent:ff=5000 undone:ff=5000", paid_by(ASKED + 5_000), stake=5_000),
    row("too much, and the refund is in another block", None, "paid",
        "payment:aa paid sent:ff=5000 undone:ff=5000 sent:ff=5000", paid_by(ASKED + 5_000)),
    row("too much, dismissed, sent back all the same, and then more came", "too_much", "paid",
        "payment:aa paid dismissed sent:ff=5000 payment:bb", paid_by(ASKED + 5_000),
        got(700, "bb"), stake=700),
    row("a coat that came back: paid as asked, all of it sent back", None, "paid",
        "payment:aa paid sent:ff=100000", paid_by(ASKED)),
    row("paid late, and any of it sent back", None, "expired", "expired payment:aa sent:ff=1",
        got(ASKED)),
    row("paid late, sent back, and paid late again", "paid_late", "expired",
        "expired payment:aa sent:ff=100000 payment:bb", got(ASKED), got(700, "bb"), stake=700),
    row("paid late, sent back, and a reorganisation took that back", "paid_late", "expired",
        "expired payment:aa sent:ff=100000 undone:ff=100000", got(ASKED), stake=ASKED),
    row("short at its end, and sent back", None, "expired", "payment:aa expired sent:ff=5",
        got(5)),
    row("after a cancellation, and sent back", None, "canceled",
        "canceled payment:aa sent:ff=100000", got(ASKED)),
    row("sent back twice", "refunded_twice", "paid",
        "payment:aa paid sent:ff=5000 again:ee=5000", paid_by(ASKED + 5_000), stake=5_000),
    row("sent back twice, and dismissed", None, "paid",
        "payment:aa paid sent:ff=5000 again:ee=5000 dismissed", paid_by(ASKED + 5_000)),
    row("sent back twice, and a reorganisation took the second back", None, "paid",
        "payment:aa paid sent:ff=5000 again:ee=5000 undone:ee=5000", paid_by(ASKED + 5_000)),
    row("sent back twice, and the first was taken back: the second sent it", None, "paid",
        "payment:aa paid sent:ff=5000 again:ee=5000 undone:ff=5000 undone:ee=5000 sent:ee=5000",
        paid_by(ASKED + 5_000)),
    row("a payment that was taken back comes first", "reorganised", "open",
        "payment:aa paid sent:ff=5000 again:ee=5000 undone_payment:aa", stake=ASKED),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "status", "words", "receipts", "stake"), CASES)
def test_what_a_refund_answers(reason, status, words, receipts, stake):
    words = happened(words)
    words = [replace(one, kind=one.kind.removesuffix("_payment")) for one in words]
    came = sum(one.amount_sats for one in receipts)
    sums = {"received_sats": came, "unconfirmed_sats": 0, "missing_sats": max(0, ASKED - came)}
    verdict = Verdict(status, None, None, receipts, **sums, confirmations=1, reason="")
    invoice = Invoice("inv", status, ASKED, None, None)
    assert reason_for(invoice, verdict, words, 294) == reason
    if reason:
        assert stake_sats(reason, invoice, verdict, words) == stake
