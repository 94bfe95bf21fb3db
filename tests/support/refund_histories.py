"""Random histories of refunds on a real chain, beside the model in `refund_model`."""

from collections.abc import Callable

from btcpay.parts.refunds import actions, manual, steps, sums
from btcpay.parts.refunds.models import Refund
from btcpay.values.errors import ChangeRefused
from storage.queries import attentions
from tests.support.refund_model import Refusal
from tests.support.refund_world import SUMS, World

MOST_REFUNDS = 40
MUST_HAPPEN = (
    "replaced",
    "reorganised",
    "taken back",
    "out of order",
    "said",
    "refused",
)
SEEN_OF_A_REFUND = manual.MOST_CANDIDATES
LEAST_SATS = 294  # an invoice's address gets no less


class History(World):
    """A shop's life, one random step after another; the model is told only of what happened."""

    def make(self) -> None:
        if len(self.names) >= MOST_REFUNDS:
            return
        invoice = self.dice.choice(self.invoices)
        sats = self.dice.choice([*SUMS, None, None])
        to = self.dice.choice([*self.addresses, None])
        order = actions.RefundRequest(
            self.merchants[invoice["id"]], invoice["id"], sats, "returned", to
        )
        is_sent_twice = sums.is_sent_twice(self.db, invoice["id"])
        ours = self._try(
            lambda: actions.make(self.db, self.till.settings, order, self.till.clock())
        )
        if is_sent_twice and sats is None:  # of which the model knows nothing
            assert ours is None
            return
        theirs = self.model.make(invoice["id"], sats, to)
        self._same(theirs, ours)
        if not isinstance(theirs, Refusal):
            assert ours and ours.amount_sats == theirs.sats
            self.names[theirs.id] = ours.id

    def give(self) -> None:
        if self.names:
            name = self.dice.choice(list(self.names))
            to = self.dice.choice(self.addresses)
            ours = self._try(
                lambda: actions.give_address(
                    self.db, self.till.settings, self.names[name], to, self.till.clock()
                )
            )
            self._same(self.model.give(name, to), ours)

    def clear(self) -> None:
        self._drop(self.model.clear, steps.CLEARED)

    def cancel(self) -> None:
        self._drop(self.model.cancel, steps.CANCELED)

    def _drop(self, theirs: Callable[[str], Refusal | None], step: steps.Step) -> None:
        if self.names:
            name = self.dice.choice(list(self.names))
            now = self.till.clock()
            ours = self._try(lambda: actions.drop(self.db, self.names[name], step, now))
            self._same(theirs(name), ours)

    def say(self) -> None:
        """Of some output to payers' addresses the merchant says that it was this refund."""
        there = [out for out in self.model.outs() if out.address in self.addresses]
        ready = [name for name in self.names if self.model.state(name) == "ready"]
        if not (there and ready):
            return
        name = self.dice.choice(ready)
        out = self.dice.choice(self.model.shown(name) or there)
        outpoint = manual.Outpoint(out.txid, out.vout)
        now = self.till.clock()
        ours = self._try(
            lambda: manual.confirm_sent(
                self.db, self.till.settings, self.names[name], outpoint, now
            )
        )
        theirs = self.model.say(name, *outpoint)
        self._same(theirs, ours)
        self.did["said"] += theirs is None

    def _try(self, step: Callable[[], Refund]) -> Refund | None:
        try:
            return step()
        except ChangeRefused:
            return None

    def _same(self, theirs: object, ours: Refund | None) -> None:
        assert isinstance(theirs, Refusal) == (ours is None), (theirs, ours)
        self.did["refused"] += ours is None

    def compare(self) -> None:
        sent = self.model.sent()
        for name, row in self.rows().items():
            assert row.status == self.model.state(name), name
            by = sent.get(name)
            ours = (row.tx_hash, row.vout, row.sent_height, row.sent_sats)
            theirs = (by.txid, by.vout, by.height, by.sats) if by else (None,) * 4
            assert ours == theirs, name
            shown = manual.candidates(self.db, row)
            possible = self.model.shown(name)
            far = [distance(row, one.amount_sats) for one in shown]
            nearest = sorted(distance(row, out.sats) for out in possible)
            assert far == nearest[:SEEN_OF_A_REFUND], (name, far, nearest)
            assert {(one.txid, one.vout) for one in shown} <= {
                (out.txid, out.vout) for out in possible
            }

        for one in self.invoices:
            self._compare_attention(one["id"])

    def _compare_attention(self, id: str) -> None:
        """Too much waits for a human until the excess is sent back; other reasons come first."""
        theirs = self.model.invoices[id]
        row = self.db.get(attentions.INVOICE, id=id)
        assert (row.status == "paid") == theirs.paid, (row, theirs)
        if not theirs.paid or row.attention not in (None, "too_much"):
            return
        sent = [self.model.refunds[name] for name in self.model.sent()]
        sent_sats = sum(one.sats for one in sent if one.invoice == id)
        is_too_much = theirs.came - theirs.asked - sent_sats >= LEAST_SATS
        assert (row.attention == "too_much") == is_too_much, (row, theirs, sent_sats)
        self.did["sent the excess"] += (
            theirs.came - theirs.asked >= LEAST_SATS and not is_too_much
        )

    def run(self, steps: int) -> None:
        """So many steps, after each of the shop's everything agrees; then all is read."""
        for _ in range(steps):
            (step,) = self.dice.choices(list(STEPS), list(STEPS.values()))
            step(self)
            if step in OF_THE_SHOP:
                self.compare()
        self.check_all()
        self.compare()
        happened = {what for what, times in self.did.items() if times}
        assert set(MUST_HAPPEN) <= happened, happened


def distance(row: Refund, sats: int) -> int:
    return abs(sats - row.amount_sats)


Steps = dict[Callable[[History], None], int]
# The shop reads of these only in a check.
ON_THE_CHAIN: Steps = {
    History.pay: 3,
    History.pay_others: 5,
    History.pay_a_refund: 3,
    History.replace: 1,
    History.mine: 6,
    History.reorganise: 2,
}
OF_THE_SHOP: Steps = {
    History.check: 6,
    History.make: 6,
    History.give: 3,
    History.clear: 1,
    History.cancel: 1,
    History.say: 2,
}
STEPS = ON_THE_CHAIN | OF_THE_SHOP
