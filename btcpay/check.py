"""The cron run: gathers what the chain says of each watched address; applying does the rest."""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from btcpay.addresses import script_of
from btcpay.applying import Look, Proof, apply, bears_out
from btcpay.errors import ExplorerError, ProofFailed
from btcpay.evidence import gather
from btcpay.explorer import Explorers, Get
from btcpay.facts import Output
from btcpay.instants import to_ms
from btcpay.price import Prices
from btcpay.proof import prove
from btcpay.proof_file import to_document
from btcpay.reorganisation import follow
from btcpay.settings import Settings
from btcpay.settlement import merge
from btcpay.standing import known_outputs, rules_for, standing
from storage import idempotency, invoices, merchants, meta
from storage.database import Database, Row

log = logging.getLogger(__name__)


@dataclass
class Run:
    """What a run did: addresses looked at, those that could not be, invoices with a new status.

    `proven`: whether a payment was proven.
    """

    looked_at: int = 0
    failed: list[str] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    tip_failed: bool = False
    proven: bool = False

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
            network = self.settings.network
            tip_height = follow(self.db, self.explorers, network, self.now())
        except ExplorerError as error:
            log.error("the check could not ask for the tip: %s", error)
            run.failed = list(ids)
            run.tip_failed = True
        else:
            for invoice_id in ids:
                self._look_at(invoice_id, tip_height, run)
            self._note_height(run)
        run.calls = self.explorers.calls
        return run

    def _note_height(self, run: Run) -> None:
        """After new payments: how high the chain is that they are on, as evidence for later."""
        if run.proven:
            try:
                follow(self.db, self.explorers, self.settings.network, self.now())
            except ExplorerError as error:
                log.warning("the height of the chain could not be proven: %s", error)

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
            look = self._gather(row, tip_height)
            verdict = apply(self.db, self.settings, row, look, self.now())
        except ExplorerError as error:
            log.warning("invoice %s could not be looked at: %s", invoice_id, error)
            run.failed.append(invoice_id)
        except Exception:  # noqa: BLE001 - the loop's edge: the next address is somebody's money too
            log.exception("invoice %s could not be looked at", invoice_id)
            run.failed.append(invoice_id)
        else:
            run.looked_at += 1
            run.proven = run.proven or bool(look.proofs)
            if look.unproven:
                run.failed.append(invoice_id)
            if verdict and verdict.status != row["status"]:
                run.changed[invoice_id] = verdict.status

    def _gather(self, row: Row, tip_height: int) -> Look:
        """Everything that has to be asked of the world about one invoice."""
        asked_at = self.now()
        account = self.db.only(merchants.BY_ID, id=row["merchant_id"])
        script = script_of(row["deposit_address"], account["script_type"])
        seen = self.explorers.outputs_to(row["deposit_address"], script)
        outputs = merge(known_outputs(self.db, row["id"]), seen, asked_at)
        proofs = {
            output.txid: self._prove(output, outputs, script, confirmations)
            for output, confirmations in self._to_be_proven(row, outputs)
        }
        return Look(
            asked_at,
            tip_height,
            seen,
            price_usd=self.prices.current_or_none() if any(proofs.values()) else None,
            proofs={txid: proof for txid, proof in proofs.items() if proof},
            unproven=not all(proofs.values()),
        )

    def _to_be_proven(self, row: Row, outputs: Sequence[Output]) -> list[tuple[Output, int]]:
        """One output of each transaction to be proven, and with how many headers.

        What would become a payment, with as many as the invoice asks for; what is in a block for
        the first time, with its own: so that an invention cannot keep an invoice open.
        """
        verdict = standing(self.db, self.settings, row, self.now(), outputs)
        due = {receipt.txid for receipt in verdict.receipts}
        confirmations = rules_for(self.settings, row).confirmations
        waiting = {o.txid: o for o in outputs if o.block and not o.credited and not o.vanished}
        return [
            (output, confirmations if txid in due else 1)
            for txid, output in waiting.items()
            if txid in due or not output.proven
        ]

    def _prove(
        self, output: Output, outputs: Sequence[Output], script: bytes, confirmations: int
    ) -> Proof | None:
        """The proof of a payment; None, with an error in the log, when no explorer has it."""
        network = self.settings.network

        def question(get: Get) -> Proof:
            assert output.block is not None  # as _to_be_proven chose it
            evidence = gather(get, output.txid, output.block, confirmations)
            proven = prove(evidence, output.txid, script, network.max_target_bits, confirmations)
            if not bears_out(proven, output, outputs):
                raise ProofFailed("the proof contradicts what the explorer said before")
            document = to_document(evidence, output.txid, script, network.name, confirmations)
            return Proof(proven, json.dumps(document))

        try:
            return self.explorers.ask(question)
        except ExplorerError as error:
            log.error("payment %s is not proven: %s", output.txid, error)
            return None
