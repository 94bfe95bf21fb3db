"""The reason why an invoice needs a human: its state and history go in, a reason comes out. Pure.

100,000 satoshis are asked; 294 is the least that can be sent to the address.
"""

from datetime import UTC, datetime

import pytest

from btcpay.settlement.attention import REASONS, reason_for, stake_sats
from btcpay.settlement.history import SENT_AGAIN, SENT_BACK, TAKEN_BACK, Happening
from btcpay.settlement.values import Invoice, Receipt, Verdict

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
ASKED = 100_000
LEAST = 294
OF_REFUNDS = {"sent": SENT_BACK, "again": SENT_AGAIN, "unsent": TAKEN_BACK}


def got(sats, txid="aa", settles=False):
    return Receipt(txid, sats, NOW, NOW, settles)


def paid_by(sats, txid="aa"):
    return got(sats, txid, settles=True)


def maybe_older(sats, txid="aa", settles=True):
    return Receipt(txid, sats, NOW, NOW, settles, may_be_older=True)


def older(sats, txid="aa", settles=False):
    return Receipt(txid, sats, NOW, NOW, settles, is_older=True)


def events(words):
    """`payment:aa undone:aa dismissed sent:ff=500` as values: a transaction's id, and satoshis."""
    for word in words.split():
        kind, _, what = word.partition(":")
        txid, _, sats = what.partition("=")
        yield Happening(OF_REFUNDS.get(kind, kind), txid, int(sats or 0))


def case(
    status, happened, *receipts, in_time=0, waiting=0, was_whole=False, at_till=False
):
    """`in_time` came in time and is confirmed, `waiting` is seen in time and is not.

    `was_whole`: once the whole sum was seen. `at_till`: where goods go over the counter at once.
    """
    came = in_time + waiting
    open_and_short = status != "paid" and came < ASKED
    sums = {"received_sats": came, "unconfirmed_sats": waiting}
    sums["missing_sats"] = ASKED - came if open_and_short else 0
    verdict = Verdict(status, None, None, receipts, **sums, confirmations=0, reason="")
    covered_at = NOW if was_whole else None
    invoice = Invoice(
        "inv", status, ASKED, NOW, NOW, covered_at=covered_at, at_till=at_till
    )
    return invoice, verdict, list(events(happened))


def row(sentence, wanted, *args, stake=None, **kwargs):
    return pytest.param(wanted, stake, case(*args, **kwargs), id=sentence)


@pytest.mark.parametrize(
    ("wanted", "stake", "case"),
    [
        row("nothing came", None, "open", ""),
        row("nothing came in time", None, "expired", "expired"),
        row("paid as asked", None, "paid", "payment:aa paid", paid_by(ASKED)),
        row("a part that can be completed", None, "open", "payment:aa", got(50), in_time=50),
        # paid late, short at its end
        row("late", "paid_late", "expired", "expired payment:aa", got(ASKED)),
        row("the rest late", "paid_late", "expired", "payment:aa expired payment:bb",
            got(50_000), got(50_000, "bb"), in_time=50_000),
        row("all of it, gone when it ended and back since", "paid_late", "expired",
            "expired payment:aa", got(ASKED), in_time=ASKED),
        row("all of it, from before its end, which nobody showed", "paid_late", "expired",
            "payment:aa expired payment:bb", got(40_000), got(60_000, "bb"), in_time=ASKED),
        row("a part, and its rest waits again", "short", "expired", "payment:aa expired",
            got(40_000), in_time=40_000, waiting=60_000),
        row("a part at its end", "short", "expired", "payment:aa expired", got(5), in_time=5),
        row("a part in time, deep after the end", "short", "expired", "expired payment:aa",
            got(5), in_time=5),
        row("a part seen in time that is in no block yet", None, "expired", "expired", waiting=5),
        # too much
        row("too much to be dust", "too_much", "paid", "payment:aa paid", paid_by(ASKED + LEAST)),
        row("just dust too much", None, "paid", "payment:aa paid", paid_by(ASKED + LEAST - 1)),
        row("a second payment", "too_much", "paid", "payment:aa paid payment:bb",
            paid_by(ASKED), got(ASKED, "bb")),
        # after cancellation
        row("money after it", "after_cancellation", "canceled", "canceled payment:aa", got(9)),
        row("a part before it, which --force accepted", None, "canceled", "payment:aa canceled",
            got(9), in_time=9),
        # short by less than can be sent
        row("a satoshi is missing", "dust_missing", "open", "payment:aa", got(ASKED - 1),
            in_time=ASKED - 1),
        row("one less than can be sent is missing", "dust_missing", "open", "payment:aa",
            got(ASKED - LEAST + 1), in_time=ASKED - LEAST + 1),
        row("what can be sent is missing", None, "open", "payment:aa", got(ASKED - LEAST),
            in_time=ASKED - LEAST),
        row("nothing is confirmed", None, "open", "", waiting=ASKED - 1),
        row("the rest waits", None, "open", "payment:aa", got(ASKED - 1), in_time=ASKED - 1,
            waiting=LEAST),
        # taken back by a reorganisation
        row("its payment is undone", "reorganised", "open", "payment:aa paid undone:aa",
            waiting=ASKED),
        row("and never comes back", "reorganised", "expired",
            "payment:aa paid undone:aa expired"),
        row("and it is paid by another", None, "paid", "payment:aa paid undone:aa payment:bb paid",
            paid_by(ASKED, "bb")),
        row("and counts again", None, "open", "payment:aa undone:aa payment:aa", got(5),
            in_time=5),
        row("one of two parts counts again", "reorganised", "open",
            "payment:aa payment:bb undone:aa undone:bb payment:bb", got(5, "bb"), in_time=5),
        row("late money is undone and counts again", "paid_late", "expired",
            "expired payment:aa undone:aa payment:aa", got(5)),
        row("a second payment is undone", "reorganised", "paid",
            "payment:aa paid payment:bb undone:bb", paid_by(ASKED)),
        # seen in full, and taken back
        row("the whole sum was seen, and it ended without it", "vanished", "expired", "expired",
            was_whole=True),
        row("it has vanished and may come again", None, "open", "", was_whole=True),
        row("a part of it is left at the end and waits", "vanished", "expired", "expired",
            waiting=5, was_whole=True),
        row("a part of it is left at the end and confirmed", "short", "expired",
            "payment:aa expired", got(5), in_time=5, was_whole=True),
        row("it comes late after all", "paid_late", "expired", "expired payment:aa", got(ASKED),
            was_whole=True),
        row("it has vanished, and a human cancels", None, "canceled", "canceled", was_whole=True),
        row("it was in a block that left, which is dismissed, and never comes", "vanished",
            "expired", "payment:aa paid undone:aa dismissed expired", was_whole=True),
        # the same at a till, where the goods are gone at once
        row("seen and gone at a till", "vanished", "open", "", was_whole=True, at_till=True),
        row("replaced by less at a till", "vanished", "open", "", waiting=5, was_whole=True,
            at_till=True),
        row("at a till it waits again", None, "open", "", waiting=ASKED, was_whole=True,
            at_till=True),
        row("a part of it is confirmed at a till", "vanished", "open", "payment:aa", got(5),
            in_time=5, was_whole=True, at_till=True),
        row("gone at a till, and its time is over", "vanished", "expired", "expired",
            was_whole=True, at_till=True),
        row("gone at a till, and paid again", None, "paid", "payment:bb paid",
            paid_by(ASKED, "bb"), was_whole=True, at_till=True),
        row("gone at a till, dismissed", None, "open", "dismissed", was_whole=True, at_till=True),
        row("gone at a till, dismissed, and its time is over", None, "expired",
            "dismissed expired", was_whole=True, at_till=True),
        row("gone at a till, canceled", None, "canceled", "canceled", was_whole=True,
            at_till=True),
        # what a human has said
        row("late, dismissed", None, "expired", "expired payment:aa dismissed", got(5)),
        row("undone, dismissed", None, "open", "payment:aa paid undone:aa dismissed"),
        row("late, dismissed, more late money", "paid_late", "expired",
            "expired payment:aa dismissed payment:bb", got(5), got(6, "bb")),
        row("undone, dismissed, paid again, undone again", "reorganised", "open",
            "payment:aa paid undone:aa dismissed payment:aa paid undone:aa"),
        row("undone, then canceled", None, "canceled", "payment:aa paid undone:aa canceled"),
        row("too much, dismissed", None, "paid", "payment:aa paid dismissed",
            paid_by(ASKED + LEAST)),
        row("too much, dismissed, a third payment", "too_much", "paid",
            "payment:aa paid dismissed payment:bb", paid_by(ASKED + LEAST), got(LEAST, "bb")),
        row("too much, dismissed, then less than can be sent", None, "paid",
            "payment:aa paid dismissed payment:bb", paid_by(ASKED + LEAST), got(LEAST - 1, "bb")),
        row("short by dust, dismissed, then it ends", "short", "expired",
            "payment:aa dismissed expired", got(ASKED - 1), in_time=ASKED - 1),
        row("settled by hand, twice what was asked", None, "paid", "expired payment:aa settled",
            paid_by(2 * ASKED)),
        row("settled by hand, then more", "too_much", "paid", "payment:aa settled payment:bb",
            paid_by(5), got(LEAST, "bb")),
        row("settled by hand, undone", "reorganised", "open", "payment:aa settled undone:aa"),
        # what was sent back, and what of it was taken back
        row("too much, and the excess was sent back", None, "paid", "payment:aa paid sent:ff=5000",
            paid_by(ASKED + 5_000)),
        row("too much, and less than can be sent is left", None, "paid",
            "payment:aa paid sent:ff=4707", paid_by(ASKED + 5_000)),
        row("too much, and a part of it was sent back", "too_much", "paid",
            "payment:aa paid sent:ff=4706", paid_by(ASKED + 5_000), stake=294),
        row("too much, sent back, and then more came", "too_much", "paid",
            "payment:aa paid sent:ff=5000 payment:bb", paid_by(ASKED + 5_000), got(700, "bb"),
            stake=700),
        row("too much, sent back, and a reorganisation took that back", "too_much", "paid",
            "payment:aa paid sent:ff=5000 unsent:ff=5000", paid_by(ASKED + 5_000), stake=5_000),
        row("too much, and the refund is in another block", None, "paid",
            "payment:aa paid sent:ff=5000 unsent:ff=5000 sent:ff=5000", paid_by(ASKED + 5_000)),
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
            "expired payment:aa sent:ff=100000 unsent:ff=100000", got(ASKED), stake=ASKED),
        row("short at its end, and sent back", None, "expired", "payment:aa expired sent:ff=5",
            got(5)),
        row("after a cancellation, and sent back", None, "canceled",
            "canceled payment:aa sent:ff=100000", got(ASKED)),
        row("sent back twice", "refunded_twice", "paid",
            "payment:aa paid sent:ff=5000 again:ee=5000", paid_by(ASKED + 5_000), stake=5_000),
        row("sent back twice, and dismissed", None, "paid",
            "payment:aa paid sent:ff=5000 again:ee=5000 dismissed", paid_by(ASKED + 5_000)),
        row("sent back twice, and a reorganisation took the second back", None, "paid",
            "payment:aa paid sent:ff=5000 again:ee=5000 unsent:ee=5000", paid_by(ASKED + 5_000)),
        row("sent back twice, and the first was taken back: the second sent it", None, "paid",
            "payment:aa paid sent:ff=5000 again:ee=5000 unsent:ff=5000 unsent:ee=5000 sent:ee=5000",
            paid_by(ASKED + 5_000)),
        row("paid by a coin that may be older", "older_coin", "paid", "payment:aa paid",
            maybe_older(ASKED), stake=ASKED),
        row("paid by such a part and another", "older_coin", "paid", "payment:aa payment:bb paid",
            maybe_older(40_000), paid_by(60_000, "bb"), stake=40_000),
        row("paid by such a coin, and then once more", "older_coin", "paid",
            "payment:aa paid payment:bb", maybe_older(ASKED), got(ASKED, "bb"), stake=ASKED),
        row("paid by such a coin, dismissed", None, "paid", "payment:aa paid dismissed",
            maybe_older(ASKED)),
        row("paid by such a coin, dismissed, and then once more", "too_much", "paid",
            "payment:aa paid dismissed payment:bb", maybe_older(ASKED), got(ASKED, "bb"),
            stake=ASKED),
        row("paid by such a coin, sent back", None, "paid", "payment:aa paid sent:ff=100000",
            maybe_older(ASKED)),
        row("such a part, accepted by hand", None, "paid", "payment:aa expired settled",
            maybe_older(5)),
        row("paid, and an older coin beside it, found later", None, "paid",
            "payment:aa paid payment:bb", paid_by(ASKED), older(ASKED, "bb")),
        row("paid too much, and an older coin beside it", "too_much", "paid",
            "payment:bb payment:aa paid", older(ASKED, "bb"), paid_by(ASKED + 500), stake=500),
        row("an older coin alone, at its end", None, "expired", "payment:aa expired", older(ASKED)),
        row("an older coin and a part, at its end", "short", "expired",
            "payment:aa payment:bb expired", older(ASKED), got(5, "bb"), in_time=5, stake=5),
        row("an older coin alone, canceled", None, "canceled", "canceled payment:aa", older(ASKED)),
        row("an older coin that a human accepted, and then the payment", "too_much", "paid",
            "payment:aa settled payment:bb", older(ASKED, settles=True), got(ASKED, "bb"),
            stake=ASKED),
        row("such a part, while the rest may come", None, "open", "payment:aa",
            maybe_older(50, settles=False), in_time=50),
        row("a payment that was taken back comes first", "reorganised", "open",
            "payment:aa paid sent:ff=5000 again:ee=5000 undone:aa", stake=ASKED),
    ],
)  # fmt: skip
def test_an_invoice_needs_attention_for_this_reason_and_sum(wanted, stake, case):
    assert wanted is None or wanted in REASONS
    invoice, verdict, happened = case
    assert reason_for(*case, LEAST) == wanted
    assert stake is None or stake_sats(wanted, invoice, verdict, happened) == stake
