"""Applies payments as sources announce them: whom they pay, and what they take back."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from btcpay.bitcoin.block import BlockParts
from btcpay.bitcoin.wire import txid_hex
from btcpay.chain.sources import MAX_INPUTS, Announced, Announcing
from btcpay.check.apply import try_apply
from btcpay.check.facts import conflicting, is_any_spent
from btcpay.check.mempool import Look, misses
from btcpay.check.plan import CLOSED_LATELY
from btcpay.check.report import Report
from btcpay.invoices.status import inputs_of
from btcpay.settings.settings import Settings
from btcpay.settlement.values import Scan, SeenOutput
from btcpay.values.errors import BadRow
from btcpay.values.money import MAX_MONEY_SATS
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import blocks
from storage.queries.lists import mempool_watch

log = logging.getLogger(__name__)

LAG = timedelta(minutes=1)  # an explorer has what was announced, though not at once


@dataclass
class Listening:
    """Listens while somebody looks at an open invoice's page, and for ten minutes more."""

    db: Database
    settings: Settings
    listener: Announcing
    now: Callable[[], datetime]
    _heard: Sequence[Announced] = field(default=(), init=False)

    def has_news(self) -> bool:
        """Whether something is to be applied; begins and ends to listen. Call it each second."""
        after = to_ms(self.now() - CLOSED_LATELY)
        self.listener.listen(bool(self.db.rows(mempool_watch.ASKED, after=after)))
        if not self._heard:
            heard = self.listener.take()
            self._heard = heard if heard and _concerned(self.db, heard) else ()
        return bool(self._heard)

    def apply(self, report: Report) -> None:
        """Applies what was heard by now, one process at a time; what is invented fails no run."""
        if self.has_news():
            found = Report()
            hear(self.db, self.settings, self._heard, self.now(), found)
            report.changed |= found.changed
            self._heard = ()


def hear(
    db: Database, settings: Settings, heard: Sequence[Announced], now: datetime, report: Report
) -> None:
    """Applies transactions one after another, as looks at a mempool that lost but what they spend.

    What is not among them still waits: nobody announces it twice.
    """
    for invoice_id, script in _concerned(db, heard).items():
        try:
            waiting = _waiting(db, invoice_id)
        except BadRow:  # the next is somebody's money too
            log.exception("what waits for invoice %s is damaged", invoice_id)
            continue
        for one in heard:
            new = _paid(one.parts, script)
            txid = txid_hex(one.parts.txids[0])
            others = [seen for seen in waiting if seen.txid != txid]
            left = [seen for seen in others if not is_any_spent(seen.inputs, one.parts.spent)]
            if not new and len(left) == len(others):
                continue
            scan = Scan(
                asked_at=one.at,
                tip_height=blocks.tip_height(db) or 0,
                waiting=[*left, *new],
                misses=len(left) < len(others),
                explorer=one.host,
            )
            if try_apply(db, settings, invoice_id, scan, now, report):
                waiting = [*left, *new]
                # What waits by their word is asked of an explorer as late as what one has shown.
                db.run(mempool_watch.LOOKED, id=invoice_id, at=to_ms(one.at))


def is_ahead(db: Database, look: Look) -> bool:
    """Whether it lacks what was announced so lately that the explorer may not have it."""
    since = to_ms(look.asked_at - LAG)
    return any(row.first_seen_at > since for row in misses(db, look))


def _concerned(db: Database, heard: Sequence[Announced]) -> dict[str, bytes]:
    """By invoice id, the script that is paid; empty where only what waits is spent otherwise."""
    scripts = {script.hex() for one in heard for script in one.parts.paid}
    rows = blocks.of_scripts(db, scripts)
    found = {row.id: bytes.fromhex(row.script) for row in rows}
    spent = set[bytes]().union(*(one.parts.spent for one in heard))
    for row in conflicting(db, spent, ()):
        found.setdefault(row.invoice_id, b"")
    return found


def _waiting(db: Database, invoice_id: str) -> list[SeenOutput]:
    """Raises BadRow."""
    return [
        SeenOutput(row.txid, row.vout, row.amount_sats, inputs=inputs_of(row))
        for row in db.rows(mempool_watch.WAITING, invoice_id=invoice_id)
    ]


def _paid(parts: BlockParts, script: bytes) -> list[SeenOutput]:
    """The outputs of the only transaction to the script; none when they are more than there is."""
    paid = parts.paid.get(script, ())
    if not paid or sum(amount_sats for _, _, amount_sats in paid) > MAX_MONEY_SATS:
        return []
    spent = sorted(parts.spent) if len(parts.spent) <= MAX_INPUTS else ()
    inputs = tuple(f"{txid_hex(one[:32])}:{int.from_bytes(one[32:], 'little')}" for one in spent)
    txid = txid_hex(parts.txids[0])
    return [SeenOutput(txid, vout, amount_sats, inputs=inputs) for _, vout, amount_sats in paid]
