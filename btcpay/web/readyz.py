"""`/healthz` and `/readyz`: the process lives, and everything that it needs is there."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flask import Blueprint, Response
from peewee import PeeweeException

from btcpay.health.state import State, state_in
from btcpay.settings.settings import Settings
from btcpay.values.errors import NotFound
from btcpay.values.finding import GREEN
from btcpay.values.times import iso
from btcpay.web.paths import add_path, json_response
from btcpay.web.service import Service
from storage import versions
from storage.database import Database, in_one_line
from storage.queries import meta

Part = dict[str, Any]
log = logging.getLogger(__name__)

CONTACT_LIFE = timedelta(days=90)  # a year at most, by the RFC
TRIED_EVERY_S = 60  # a trial waits for the disk, and anybody may ask
LITTLE_BYTES = 64


class Trial:
    """Finds out whether the database takes writes, by writing.

    While all is well it writes a few bytes, once a minute. After a failure it writes as much as an
    order does, each time it is asked, until that succeeds: a full disk may still take a few bytes.
    `monotonic_s` answers seconds of a clock that never steps.
    """

    def __init__(
        self, db: Database, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._monotonic_s = monotonic_s
        self._again_s = monotonic_s()

    def passes(self) -> bool:
        """True if the last write succeeded; writes again when it is due."""
        now_s = self._monotonic_s()
        if not self._db.is_doubtful and now_s < self._again_s:
            return True
        was_doubtful = self._db.is_doubtful
        self._db.is_doubtful = False
        self._again_s = now_s + TRIED_EVERY_S
        try:
            meta.try_to_write(
                self._db, meta.ORDER_BYTES if was_doubtful else LITTLE_BYTES
            )
        except PeeweeException as error:
            log.error("the database takes no writes: %s", in_one_line(error))
            return False
        return True


def blueprint(service: Service) -> Blueprint:
    """Serves both, without a key and outside the limits of the API; they show no secret."""
    trial = Trial(service.db)
    made = Blueprint("health", __name__)
    add_path(made, "/healthz", lambda: json_response({"ok": True}), "healthz")
    add_path(made, "/readyz", lambda: readiness(service, trial), "readyz")
    add_path(
        made, "/.well-known/security.txt", lambda: security_txt(service), "security"
    )
    return made


def security_txt(service: Service) -> Response:
    """Where to report a fault (RFC 9116), if the settings say it. Raises NotFound."""
    contact = service.settings.security_contact
    if not contact:
        raise NotFound("there is nothing at this path")
    expires = iso(service.now() + CONTACT_LIFE)
    return Response(
        f"Contact: {contact}\nExpires: {expires}\n", content_type="text/plain"
    )


def readiness(service: Service, trial: Trial) -> Response:
    """200, or 503 when the database or the check fails; each part with its `ok`.

    The store of the rate limits is only shown: the shop goes on without it.
    """
    try:
        found = versions.version(service.db)
        check = _check(
            state_in(service.db, service.settings, service.now()), service.settings
        )
        parts = {"database": _database(found, trial), "check": check}
    except PeeweeException:
        parts = {
            name: {"ok": False, "problem": "no answer"}
            for name in ("database", "check")
        }
    ready = all(part["ok"] for part in parts.values())
    lonely = {
        "ok": False,
        "problem": "the store does not answer: each process counts by itself",
    }
    parts["rate_limits"] = {"ok": True} if service.limiter.is_complete() else lonely
    response = json_response({"ok": ready, **parts})
    response.status_code = 200 if ready else 503
    return response


def _database(found: int | None, trial: Trial) -> Part:
    problem = f"this program needs version {versions.VERSION}"
    if found == versions.VERSION:
        if trial.passes():
            return {"ok": True, "version": found}
        problem = "it takes no writes"
    return {"ok": False, "version": found, "problem": problem}


def _check(state: State, settings: Settings) -> Part:
    known = state.progress
    part: Part = {
        "ok": state.payments == GREEN,
        "checked_at": state.checked_at and iso(state.checked_at),
        "height": known and known.height,
        "blocks_behind": known.behind if known else 0,
        "tip_at": known and iso(known.mined_at),
        "previews_late": state.previews_late,
    }
    if state.checked_at is None:
        part["problem"] = "no check has been complete yet"
    elif not part["ok"]:
        part["problem"] = f"not within the last {settings.check_max_age_min} minutes"
    return part
