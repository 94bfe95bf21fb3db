"""Updates invoices by unconfirmed transactions that peers announce.

An announced transaction matches the invoices that it pays. It also matches invoices
that lose an unconfirmed payment, because the transaction spends the same inputs.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from btcpay import hooks
from btcpay.bitcoin.wire import hash_from_hex
from btcpay.chain.sources import AnnouncedTx, Listener
from btcpay.check.announced_effects import effect_on, outputs_to
from btcpay.check.apply import try_apply
from btcpay.check.due import CLOSED_LATELY
from btcpay.check.facts import conflicting_outputs
from btcpay.check.report import Report
from btcpay.invoices.status import inputs_of
from btcpay.settings.settings import Settings
from btcpay.settlement.values import Scan, SeenOutput
from btcpay.values.errors import BadRow
from btcpay.values.times import to_ms
from storage import locks
from storage.database import Database, in_one_line
from storage.faults import PeeweeException
from storage.queries import blocks
from storage.queries.lists import mempool_watch

log = logging.getLogger(__name__)

# Seconds between two checks for announcements, so that pages show payments within seconds.
LISTENS_EVERY_S = 1.0


@dataclass
class Announcements:
    """Applies announced transactions to invoices, while an invoice's page is open.

    The listener, which collects the announcements, stays on until ten minutes after the
    last page was closed.
    """

    db: Database
    settings: Settings
    listener: Listener
    now: Callable[[], datetime]
    _unapplied: Sequence[AnnouncedTx] = field(default=(), init=False)

    def pause(
        self,
        seconds: float,
        wait: Callable[[float], bool],
        after_news: Callable[[], None],
    ) -> bool:
        """Waits for `seconds`, and applies the transactions that are announced meanwhile.

        `wait` sleeps for the given seconds, and returns True if the program must stop.
        If so, this method returns True at once; otherwise it returns False at the end.
        `after_news` is called after each attempt to apply announced transactions. After
        a database error, none is applied for the rest of the pause.
        """
        end_s = time.monotonic() + seconds
        while True:
            left_s = max(0.0, end_s - time.monotonic())
            if wait(min(LISTENS_EVERY_S, left_s)):
                return True
            if time.monotonic() >= end_s:
                return False
            try:
                if self.collect():
                    self._apply_alone()
                    after_news()
            except PeeweeException as error:
                log.error(
                    "announced payments could not be looked up: %s", in_one_line(error)
                )
                return wait(max(0.0, end_s - time.monotonic()))

    def _apply_alone(self) -> None:
        """Applies the announced transactions, unless a check is running."""
        url = self.settings.database_url
        with locks.only_one(self.db, url, "check") as is_alone:
            if is_alone:
                self.apply(Report())

    def collect(self) -> bool:
        """Collects announced transactions. Returns True if `apply` has work to do.

        1. Turns the listener on if an invoice's page was open in the last ten minutes,
           else off.
        2. Takes the announced transactions, unless earlier ones still wait for `apply`.
        3. Drops them all if none matches an invoice.
        """
        after_ms = to_ms(self.now() - CLOSED_LATELY)
        asked_lately = self.db.rows(mempool_watch.ASKED, after=after_ms)
        self.listener.listen(bool(asked_lately))
        if not self._unapplied:
            announced = self.listener.take()
            if announced and _scripts_of_matches(self.db, announced):
                self._unapplied = announced
        return bool(self._unapplied)

    def apply(self, report: Report) -> None:
        """Collects announced transactions, and applies them to the invoices that they match.

        A transaction that cannot be applied, for example a forged one, does not count
        as a failure of the run. Changed statuses are added to the report.
        """
        if self.collect():
            try:
                self._apply_all(report)
            finally:  # a transaction that fails now must not fail each later run as well
                self._unapplied = ()

    def _apply_all(self, report: Report) -> None:
        """Applies the transactions to each invoice that they match."""
        # A failure in `report` makes the run fail. A forged transaction must not do so,
        # so only the new statuses are copied from this report.
        scratch = Report()
        scripts = _scripts_of_matches(self.db, self._unapplied)
        for invoice_id, script in scripts.items():
            try:
                self._apply(invoice_id, script, scratch)
            except BadRow:  # one damaged row must not block the other invoices
                log.exception(
                    "the waiting outputs of invoice %s are damaged", invoice_id
                )
        report.new_statuses |= scratch.new_statuses

    def _apply(self, invoice_id: str, script: bytes, report: Report) -> None:
        """Applies the announced transactions to one invoice, in order. Raises BadRow.

        Each transaction is applied as if a mempool had shown it. Unconfirmed outputs of
        transactions that it replaces are missing in this mempool. If the listener does
        not confirm the replacement, the transaction is skipped. All other unconfirmed
        outputs stay, since peers do not announce a transaction twice.
        """
        waiting = self._waiting_outputs(invoice_id)
        for announced_tx in self._unapplied:
            tx = announced_tx.contents
            paid = outputs_to(script, tx)
            effect = effect_on(waiting, tx)
            if not paid and not effect.lost_txids:
                continue
            if not self._replaces_all(tx.txids[0], effect.lost_txids):
                continue
            waiting_now = [*effect.remaining, *paid]
            scan = Scan(
                asked_at=announced_tx.at,
                tip_height=blocks.tip_height(self.db) or 0,
                waiting=waiting_now,
                absent_is_gone=bool(effect.lost_txids),
                explorer=announced_tx.host,
            )
            scans = {invoice_id: scan}
            failed_ids = try_apply(self.db, self.settings, scans, self.now(), report)
            if failed_ids:
                continue
            waiting = waiting_now
            # This counts as a look at the mempool: the next request to an explorer is
            # due as late as if an explorer had shown the transaction.
            self.db.run(mempool_watch.LOOKED, id=invoice_id, at=to_ms(announced_tx.at))

    def _waiting_outputs(self, invoice_id: str) -> list[SeenOutput]:
        """Returns the invoice's stored unconfirmed outputs."""
        outputs = []
        for row in self.db.rows(mempool_watch.WAITING, invoice_id=invoice_id):
            inputs = inputs_of(row)
            outputs.append(
                SeenOutput(row.txid, row.vout, row.amount_sats, inputs=inputs)
            )
        return outputs

    def _replaces_all(self, txid: bytes, lost_txids: Iterable[str]) -> bool:
        """True if the listener confirms that `txid` replaces all of `lost_txids`."""
        return all(self.listener.replaces(txid, hash_from_hex(id)) for id in lost_txids)


def open_announcements(
    settings: Settings,
    db: Database,
    now: Callable[[], datetime],
) -> Announcements | None:
    """Opens the first listener for announced transactions that a part offers.

    A part is an optional plug-in. Returns None if no part offers a listener.
    """
    for part in hooks.of(hooks.Sources):
        listener = part.open_listener(settings, db, now)
        if listener is not None:
            return Announcements(db, settings, listener, now)
    return None


def _scripts_of_matches(
    db: Database,
    announced: Sequence[AnnouncedTx],
) -> dict[str, bytes]:
    """Returns the script of each invoice that the transactions match, by invoice id.

    The script is empty if the invoice only loses an unconfirmed payment.
    """
    scripts: set[str] = set()
    spent: set[bytes] = set()
    for announcement in announced:
        contents = announcement.contents
        scripts.update(script.hex() for script in contents.outputs_by_script)
        spent |= contents.spent_outpoints
    rows = db.rows(blocks.OF_SCRIPTS, texts=blocks.json_keys(scripts))
    matches = {row.id: bytes.fromhex(row.script) for row in rows}
    for output in conflicting_outputs(db, spent, ()):
        matches.setdefault(output.invoice_id, b"")
    return matches
