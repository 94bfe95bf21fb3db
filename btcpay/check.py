"""The cron run: gathers what the chain says of each watched address; applying does the rest."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from btcpay.addresses import script_of
from btcpay.applying import Look, apply
from btcpay.errors import ExplorerError
from btcpay.explorer import Explorers
from btcpay.instants import to_ms
from btcpay.price import Prices
from btcpay.settings import Settings
from btcpay.standing import known_outputs
from storage import idempotency, invoices, merchants, meta
from storage.database import Database, Row

log = logging.getLogger(__name__)


@dataclass
class Run:
    """What a run did: addresses looked at, those that could not be, invoices with a new status."""

    looked_at: int = 0
    failed: list[str] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    tip_failed: bool = False

    @property
    def complete(self) -> bool:
        """Whether every due address was looked at."""
        return not self.failed and not self.tip_failed


@dataclass(frozen=True)
class Checker:
    """What a check needs; `now` reads the wall clock."""

    db: Database
    settings: Settings
    explorers: Explorers
    prices: Prices
    now: Callable[[], datetime]

    def run(self, ids: Iterable[str]) -> Run:
        """Looks at the addresses of these invoices.

        One address that cannot be asked, or whose answer cannot be stored, never stops the run.
        """
        run = Run()
        try:
            tip_height = self.explorers.tip_height()
        except ExplorerError as error:
            log.error("the check could not ask for the tip: %s", error)
            run.failed = list(ids)
            run.tip_failed = True
        else:
            meta.put(self.db, "tip_height", str(tip_height))
            for invoice_id in ids:
                self._look_at(invoice_id, tip_height, run)
        run.calls = self.explorers.calls
        return run

    def watched(self) -> list[str]:
        """Ids of the invoices whose addresses are looked at, longest unseen first."""
        since = self.now() - timedelta(hours=self.settings.watch_after_expiry_h)
        return [row["id"] for row in self.db.rows(invoices.WATCHED, finished_after=to_ms(since))]

    def finish(self, run: Run) -> None:
        """After a run over all that is watched: notes its time, forgets old idempotency keys."""
        now = self.now()
        if run.complete:
            meta.put(self.db, "checked_at", str(to_ms(now)))
        ttl = timedelta(hours=self.settings.idempotency_ttl_h)
        self.db.run(idempotency.FORGET, before=to_ms(now - ttl))

    def _look_at(self, invoice_id: str, tip_height: int, run: Run) -> None:
        try:
            row = self.db.only(invoices.WHOLE, id=invoice_id)
            verdict = apply(self.db, self.settings, row, self._gather(row, tip_height), self.now())
        except ExplorerError as error:
            log.warning("invoice %s could not be looked at: %s", invoice_id, error)
            run.failed.append(invoice_id)
        except Exception:  # noqa: BLE001 - the loop's edge: the next address is somebody's money too
            log.exception("invoice %s could not be looked at", invoice_id)
            run.failed.append(invoice_id)
        else:
            run.looked_at += 1
            if verdict and verdict.status != row["status"]:
                run.changed[invoice_id] = verdict.status

    def _gather(self, row: Row, tip_height: int) -> Look:
        asked_at = self.now()
        account = self.db.only(merchants.BY_ID, id=row["merchant_id"])
        script = script_of(row["deposit_address"], account["script_type"])
        outputs = self.explorers.outputs_to(row["deposit_address"], script)
        credited = {
            (output.txid, output.vout)
            for output in known_outputs(self.db, row["id"])
            if output.credited
        }
        arrived = any(seen.block and (seen.txid, seen.vout) not in credited for seen in outputs)
        price_usd = self.prices.current_or_none() if arrived else None
        return Look(asked_at, tip_height, outputs, price_usd)
