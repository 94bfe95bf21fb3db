"""A run of the mail: what is due goes out in one session, and how each went is noted."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage

from btcpay.notify.mail import outbox
from btcpay.notify.mail.compose import compose
from btcpay.notify.mail.letter import message_of
from btcpay.notify.mail.server import (
    FAILURES,
    TIMEOUT_S,
    NoSession,
    Outcome,
    hand_over,
    open_session,
    why,
)
from btcpay.notify.webhooks.schedule import next_try
from btcpay.settings.mail_settings import MailServer, Sender, checked_address
from btcpay.settings.settings import Settings
from btcpay.values.errors import BadRow
from btcpay.values.times import from_ms, to_ms
from storage.database import Database, Row
from storage.queries import mails
from storage.queries.totals import tallies

log = logging.getLogger(__name__)

# Of a run, beside the webhooks; a mail begins only while an answer to it can still be heard.
RUN_S = 15
MOST_OF_A_RUN = 100
GOODBYE_S = 1
SLOW = Outcome(False, told="does not answer in time")


@dataclass
class Sent:
    """What a run has sent, and what it could not."""

    sent: int = 0
    failed: int = 0


@dataclass(frozen=True)
class _Ready:
    """A mail that can be handed over."""

    row: Row
    to: str
    message: EmailMessage


class Mailer:
    """What a run needs; `now` reads the wall clock. Only the caller's thread uses the database."""

    def __init__(self, db: Database, settings: Settings, now: Callable[[], datetime]) -> None:
        self._db, self._settings, self._now = db, settings, now
        self._talk: threading.Thread | None = None

    def run(self, run_s: int = RUN_S) -> Sent:
        """Sends what is due, for so long at most; what is left waits for the next run.

        A mail whose answer comes after that is sent again, with the same Message-ID. While a server
        keeps an earlier session open nothing is sent.
        """
        server, sender = self._settings.smtp_url, self._settings.mail_from
        if server is None or sender is None:
            outbox.rest(self._db, self._now())
            return Sent()
        outbox.fill(self._db, self._now())
        if self._is_talking():
            return Sent()
        due = self._db.rows(mails.DUE, now=to_ms(self._now()), limit=MOST_OF_A_RUN)
        told = Sent()
        ready = [one for row in due if (one := self._ready(row, sender, told))]
        if ready:
            self._send(server, sender, ready, run_s, told)
        return told

    def _is_talking(self) -> bool:
        """Whether an earlier run's session goes on; one that is saying goodbye may."""
        if self._talk is not None:
            self._talk.join(GOODBYE_S)
        return self._talk is not None and self._talk.is_alive()

    def _ready(self, row: Row, sender: Sender, told: Sent) -> _Ready | None:
        """None when nothing is to be sent: the row is gone, or given up."""
        if from_ms(row["created_at"]) < self._now() - outbox.STALE:
            self._note(row, Outcome(False, True, "too late"), told)
            return None
        try:
            found = compose(self._db, self._settings.base_url, row, self._now())
            to = _recipient(found[0]) if found else ""
        except BadRow as error:
            why_not = f"cannot be sent: {error}"
            self._note(row, Outcome(False, True, why_not), told)
            return None
        if found is None:
            self._db.run(mails.DROP, **_key(row))
            return None
        id = ".".join((row["about"].replace(" ", "."), str(row["merchant_id"]), row["recipient"]))
        message = message_of(found[1], sender, to, id, from_ms(row["created_at"]))
        return _Ready(row, to, message)

    def _send(
        self, server: MailServer, sender: Sender, ready: Sequence[_Ready], run_s: int, told: Sent
    ) -> None:
        outcomes: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        until_s = time.monotonic() + run_s
        args = (server, sender, ready, until_s - TIMEOUT_S, outcomes)
        self._talk = threading.Thread(target=_talk, args=args, daemon=True)
        self._talk.start()
        for place, one in enumerate(ready):
            try:
                outcome = outcomes.get(timeout=max(0, until_s - time.monotonic()))
            except queue.Empty:
                # At the first one the server let nobody in; later it was slow about that one.
                for late in ready if place == 0 else [one]:
                    self._note(late.row, SLOW, told)
                outcome = None
            if outcome is None:
                break
            self._note(one.row, outcome, told)
        if told.failed:
            log.warning("mail server %s: %d mails could not be sent", server.host, told.failed)

    def _note(self, row: Row, outcome: Outcome, told: Sent) -> None:
        """Writes how it went: sent, failed, or given_up."""
        now, attempts = self._now(), row["attempts"] + 1
        is_over = outcome.is_taken or outcome.is_final
        again_at = None if is_over else next_try(attempts, now)
        result = "sent" if outcome.is_taken else "failed" if again_at else "given_up"
        with self._db.write():
            changed = self._db.run(
                mails.TRIED,
                **_key(row),
                attempts=row["attempts"],
                next_at=again_at and to_ms(again_at),
                at=to_ms(now),
                sent_at=to_ms(now) if outcome.is_taken else None,
                answer=outcome.told or None,
            )
            if changed:
                self._db.run(tallies.ADD, name="mails", label=result, total=1)
        told.sent += outcome.is_taken
        told.failed += not outcome.is_taken


def _key(row: Row) -> Row:
    return {name: row[name] for name in ("about", "merchant_id", "recipient")}


def _recipient(text: str) -> str:
    try:
        return checked_address(text)
    except ValueError:
        raise BadRow("no address that mail can be sent to") from None


def _talk(
    server: MailServer,
    sender: Sender,
    ready: Sequence[_Ready],
    begin_until_s: float,
    outcomes: "queue.SimpleQueue[Outcome | None]",
) -> None:
    """Puts an outcome for each mail, in their order; None where the untried ones begin."""
    try:
        session = open_session(server, sender.domain)
    except NoSession as error:
        for _ in ready:
            outcomes.put(Outcome(False, told=str(error)))
        return
    try:
        for one in ready:
            if time.monotonic() > begin_until_s:
                break
            outcomes.put(hand_over(session, one.message, sender.address, one.to))
        outcomes.put(None)
        session.quit()
    except FAILURES as error:
        outcomes.put(Outcome(False, told=why(error)))
        outcomes.put(None)
    finally:
        session.close()
