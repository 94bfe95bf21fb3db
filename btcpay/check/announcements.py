"""Applies announced payments between two runs, from sources that parts bring.

They concern the invoices that they pay, and those whose money they take back.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from peewee import PeeweeException

from btcpay import hooks
from btcpay.bitcoin.block import BlockContents
from btcpay.bitcoin.wire import hash_from_hex, hash_to_hex
from btcpay.chain.sources import MAX_INPUTS, AnnouncedTx, Listener
from btcpay.check.apply import try_apply
from btcpay.check.due import CLOSED_LATELY
from btcpay.check.facts import conflicting_outputs, is_any_spent
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

# Short enough for a page to show its payment within seconds.
HEARS_EVERY_S = 1.0


@dataclass
class Announcements:
    """Payments that are announced while an invoice's page is open, and for ten minutes more."""

    db: Database
    settings: Settings
    listener: Listener
    now: Callable[[], datetime]
    _announced: Sequence[AnnouncedTx] = field(default=(), init=False)

    def pause(
        self,
        seconds: float,
        wait: Callable[[float], bool],
        after_news: Callable[[], None],
    ) -> bool:
        """Listens for that long, and calls `after_news`; True if `wait` has ended it."""
        end_s = time.monotonic() + seconds
        while not wait(max(0.0, min(HEARS_EVERY_S, end_s - time.monotonic()))):
            if time.monotonic() >= end_s:
                return False
            try:
                if self.has_news():
                    self._apply_alone()
                    after_news()
            except PeeweeException as error:
                log.error(
                    "announced payments could not be looked up: %s", in_one_line(error)
                )
                return wait(max(0.0, end_s - time.monotonic()))
        return True

    def _apply_alone(self) -> None:
        """Applies the news, unless a check runs beside it."""
        url = self.settings.database_url
        with locks.only_one(self.db, url, "check") as is_alone:
            if is_alone:
                self.apply(Report())

    def has_news(self) -> bool:
        """True if something can be applied. Listens while pages are open."""
        after = to_ms(self.now() - CLOSED_LATELY)
        pages = self.db.rows(mempool_watch.ASKED, after=after)
        self.listener.listen(bool(pages))
        if not self._announced:
            announced = self.listener.take()
            if announced and _matches(self.db, announced):
                self._announced = announced
        return bool(self._announced)

    def apply(self, report: Report) -> None:
        """Applies all that was announced; an invented payment does not fail the run."""
        if self.has_news():
            try:
                self._apply_all(report)
            finally:  # what fails now must not end each later run as well
                self._announced = ()

    def _apply_all(self, report: Report) -> None:
        # An invented payment must not fail the run, so only the new statuses are reported.
        own_report = Report()
        for invoice_id, script in _matches(self.db, self._announced).items():
            try:
                self._apply(invoice_id, script, own_report)
            except BadRow:  # the next is somebody's money too
                log.exception(
                    "the waiting outputs of invoice %s are damaged", invoice_id
                )
        report.changed |= own_report.changed

    def _apply(self, invoice_id: str, script: bytes, report: Report) -> None:
        """Applies transactions one after another, each as a look at a mempool.

        In such a look only those are missing that it replaces, and the listener must agree to each.
        Peers announce nothing twice, so everything else that waited still waits. Raises BadRow.
        """
        waiting = [
            SeenOutput(row.txid, row.vout, row.amount_sats, inputs=inputs_of(row))
            for row in self.db.rows(mempool_watch.WAITING, invoice_id=invoice_id)
        ]
        for announced in self._announced:
            tx = announced.contents
            paid = _outputs_to(script, tx)
            txid = hash_to_hex(tx.txids[0])
            others = [output for output in waiting if output.txid != txid]
            remaining = [
                output
                for output in others
                if not is_any_spent(output.inputs, tx.spent_outpoints)
            ]
            lost = {output.txid for output in others}
            lost -= {output.txid for output in remaining}
            if not paid and not lost:
                continue
            if not self._takes_back(tx.txids[0], lost):
                continue
            scan = Scan(
                asked_at=announced.at,
                tip_height=blocks.tip_height(self.db) or 0,
                waiting=[*remaining, *paid],
                absent_is_gone=bool(lost),
                explorer=announced.host,
            )
            scans = {invoice_id: scan}
            if try_apply(self.db, self.settings, scans, self.now(), report):
                continue
            waiting = [*remaining, *paid]
            # An explorer is then asked about it no sooner than if it had shown it itself.
            self.db.run(mempool_watch.LOOKED, id=invoice_id, at=to_ms(announced.at))

    def _takes_back(self, txid: bytes, lost: Iterable[str]) -> bool:
        """True if the listener agrees that the transaction replaces all of the lost ones."""
        return all(self.listener.replaces(txid, hash_from_hex(id)) for id in lost)


def open_announcements(
    settings: Settings, db: Database, now: Callable[[], datetime]
) -> Announcements | None:
    """The first listener of a part's `source`; None if no configured source announces anything."""
    for part in hooks.of(hooks.Sources):
        listener = part.open_listener(settings, db, now)
        if listener is not None:
            return Announcements(db, settings, listener, now)
    return None


def _matches(db: Database, announced: Sequence[AnnouncedTx]) -> dict[str, bytes]:
    """The paid script, by invoice id; empty for an invoice that only loses money."""
    scripts: set[str] = set()
    spent: set[bytes] = set()
    for announcement in announced:
        scripts.update(
            script.hex() for script in announcement.contents.outputs_by_script
        )
        spent |= announcement.contents.spent_outpoints
    rows = db.rows(blocks.OF_SCRIPTS, texts=blocks.given(scripts))
    matches = {row.id: bytes.fromhex(row.script) for row in rows}
    for output in conflicting_outputs(db, spent, ()):
        matches.setdefault(output.invoice_id, b"")
    return matches


def _outputs_to(script: bytes, tx: BlockContents) -> list[SeenOutput]:
    """The transaction's outputs to the script; none if they exceed the money that can exist."""
    paid = tx.outputs_by_script.get(script, ())
    sum_sats = sum(amount_sats for _, _, amount_sats in paid)
    if not paid or sum_sats > MAX_MONEY_SATS:
        return []
    inputs: tuple[str, ...] = ()
    if len(tx.spent_outpoints) <= MAX_INPUTS:
        inputs = tuple(
            _outpoint_text(outpoint) for outpoint in sorted(tx.spent_outpoints)
        )
    txid = hash_to_hex(tx.txids[0])
    return [
        SeenOutput(txid, vout, amount_sats, inputs=inputs)
        for _, vout, amount_sats in paid
    ]


def _outpoint_text(outpoint: bytes) -> str:
    """An outpoint of 36 bytes as "txid:vout"."""
    vout = int.from_bytes(outpoint[32:], "little")
    return f"{hash_to_hex(outpoint[:32])}:{vout}"
