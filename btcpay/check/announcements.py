"""Listens, between two runs, to sources that parts bring.

AnnouncedTx payments are applied to the invoices they pay, and to those whose money they take back.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from peewee import PeeweeException

from btcpay import hooks
from btcpay.bitcoin.block import BlockContents
from btcpay.bitcoin.wire import hash_from_hex, hash_to_hex
from btcpay.chain.sources import MAX_INPUTS, AnnouncedTx, Listener
from btcpay.check.apply import try_apply
from btcpay.check.facts import conflicting_outputs, is_any_spent
from btcpay.check.plan import CLOSED_LATELY
from btcpay.check.report import Report
from btcpay.invoices.status import inputs_of
from btcpay.settings.settings import Settings
from btcpay.settlement.values import Scan, SeenOutput
from btcpay.values.errors import BadRow
from btcpay.values.money import MAX_MONEY_SATS
from btcpay.values.times import to_ms
from storage import locks
from storage.database import Database, in_one_line
from storage.queries import blocks
from storage.queries.lists import mempool_watch

log = logging.getLogger(__name__)

HEARS_EVERY_S = 1.0  # so that a page shows its payment within seconds


@dataclass
class Announcements:
    """Takes what is announced while an open invoice's page is open, and for ten minutes more."""

    db: Database
    settings: Settings
    listener: Listener
    now: Callable[[], datetime]
    _heard: Sequence[AnnouncedTx] = field(default=(), init=False)

    def pause(
        self, seconds: float, wait: Callable[[float], bool], applied: Callable[[], None]
    ) -> bool:
        """Listens for that long, and calls `applied` after news; True when `wait` has ended it."""
        end_s = time.monotonic() + seconds
        while not wait(max(0.0, min(HEARS_EVERY_S, end_s - time.monotonic()))):
            if time.monotonic() >= end_s:
                return False
            try:
                if self.has_news():
                    with locks.only_one(
                        self.db, self.settings.database_url, "check"
                    ) as alone:
                        if alone:
                            self.apply(Report())
                    applied()
            except PeeweeException as error:
                log.error(
                    "announced payments could not be looked up: %s", in_one_line(error)
                )
                return wait(max(0.0, end_s - time.monotonic()))
        return True

    def has_news(self) -> bool:
        """True when something can be applied. Begins to listen; takes what pages need."""
        after = to_ms(self.now() - CLOSED_LATELY)
        self.listener.listen(bool(self.db.rows(mempool_watch.ASKED, after=after)))
        if not self._heard:
            heard = self.listener.take()
            self._heard = heard if heard and _concerned(self.db, heard) else ()
        return bool(self._heard)

    def apply(self, report: Report) -> None:
        """Applies everything that was heard; an invented payment does not fail the run."""
        if self.has_news():
            try:
                self._apply_all(report)
            finally:  # what fails now must not end each later run as well
                self._heard = ()

    def _apply_all(self, report: Report) -> None:
        found = Report()
        for invoice_id, script in _concerned(self.db, self._heard).items():
            try:
                self._apply(invoice_id, script, found)
            except BadRow:  # the next is somebody's money too
                log.exception(
                    "the waiting outputs of invoice %s are damaged", invoice_id
                )
        report.changed |= found.changed

    def _apply(self, invoice_id: str, script: bytes, report: Report) -> None:
        """Applies transactions one after another, each as a look at a mempool.

        In such a look only those are missing that it replaces, and the listener must agree to each.
        Peers announce nothing twice, so everything else that waited still waits. Raises BadRow.
        """
        waiting = [
            SeenOutput(row.txid, row.vout, row.amount_sats, inputs=inputs_of(row))
            for row in self.db.rows(mempool_watch.WAITING, invoice_id=invoice_id)
        ]
        for one in self._heard:
            new = _paid(one.contents, script)
            internal = one.contents.txids[0]
            txid = hash_to_hex(internal)
            others = [seen for seen in waiting if seen.txid != txid]
            left = [
                seen
                for seen in others
                if not is_any_spent(seen.inputs, one.contents.spent_outpoints)
            ]
            lost = {seen.txid for seen in others} - {seen.txid for seen in left}
            is_back = all(
                self.listener.replaces(internal, hash_from_hex(id)) for id in lost
            )
            if not (new or lost) or not is_back:
                continue
            scan = Scan(
                asked_at=one.at,
                tip_height=blocks.tip_height(self.db) or 0,
                waiting=[*left, *new],
                absent_is_gone=bool(lost),
                explorer=one.host,
            )
            if not try_apply(
                self.db, self.settings, {invoice_id: scan}, self.now(), report
            ):
                waiting = [*left, *new]
                # So an explorer is asked about it no sooner than if it had shown it itself.
                self.db.run(mempool_watch.LOOKED, id=invoice_id, at=to_ms(one.at))


def open_announcements(
    settings: Settings, db: Database, now: Callable[[], datetime]
) -> Announcements | None:
    """The first listener of a part's `source`; None if no configured source announces anything."""
    found = (part.open_listener(settings, db, now) for part in hooks.of(hooks.Sources))
    listener = next(filter(None, found), None)
    if listener:
        return Announcements(db, settings, listener, now)
    return None


def _concerned(db: Database, heard: Sequence[AnnouncedTx]) -> dict[str, bytes]:
    """The paid script, by invoice id; empty for an invoice that only loses money."""
    scripts = {
        script.hex() for one in heard for script in one.contents.outputs_by_script
    }
    rows = db.rows(blocks.OF_SCRIPTS, texts=blocks.given(scripts))
    found = {row.id: bytes.fromhex(row.script) for row in rows}
    spent = set[bytes]().union(*(one.contents.spent_outpoints for one in heard))
    for row in conflicting_outputs(db, spent, ()):
        found.setdefault(row.invoice_id, b"")
    return found


def _paid(parts: BlockContents, script: bytes) -> list[SeenOutput]:
    """The transaction's outputs to the script; none if they exceed the money that can exist."""
    paid = parts.outputs_by_script.get(script, ())
    if not paid or sum(amount_sats for _, _, amount_sats in paid) > MAX_MONEY_SATS:
        return []
    spent = (
        sorted(parts.spent_outpoints)
        if len(parts.spent_outpoints) <= MAX_INPUTS
        else ()
    )
    inputs = tuple(
        f"{hash_to_hex(one[:32])}:{int.from_bytes(one[32:], 'little')}" for one in spent
    )
    txid = hash_to_hex(parts.txids[0])
    return [
        SeenOutput(txid, vout, amount_sats, inputs=inputs)
        for _, vout, amount_sats in paid
    ]
