"""The endpoints `/healthz` (the process runs), `/readyz` (the shop works), security.txt."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flask import Blueprint, Response

from btcpay.health.state import State, state_in
from btcpay.settings.settings import Settings
from btcpay.values.errors import NotFound
from btcpay.values.finding import GREEN
from btcpay.values.times import iso
from btcpay.web.paths import add_path, json_response
from btcpay.web.service import Service
from storage import versions
from storage.database import Database, in_one_line
from storage.faults import PeeweeException
from storage.queries import meta

Component = dict[str, Any]
log = logging.getLogger(__name__)

CONTACT_LIFE = timedelta(days=90)  # RFC 9116 recommends less than a year
TRIED_EVERY_S = 60  # a test writes to the disk, and anybody can request it
FEW_BYTES = 64
_NO_ANSWER = {"ok": False, "problem": "no answer"}


class Trial:
    """Tests whether the database accepts writes, by writing.

    While writes succeed, `passes` writes FEW_BYTES, at most once in TRIED_EVERY_S. After a
    failed database transaction, each call writes as many bytes as an order needs, because
    a full disk may still accept a few bytes. This ends with the first success.

    `monotonic_s` returns the time of a monotonic clock in seconds.
    """

    def __init__(
        self,
        db: Database,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._monotonic_s = monotonic_s
        self._next_test_s = monotonic_s()

    def passes(self) -> bool:
        """True if the database accepts writes, as far as is known.

        Writes only if a test is due; otherwise returns True.
        """
        now_s = self._monotonic_s()
        was_doubtful = self._db.is_doubtful
        if not was_doubtful and now_s < self._next_test_s:
            return True
        self._db.is_doubtful = False  # if the test fails, the database sets it again
        self._next_test_s = now_s + TRIED_EVERY_S
        size = FEW_BYTES
        if was_doubtful:
            size = meta.ORDER_BYTES
        try:
            meta.try_to_write(self._db, size)
        except PeeweeException as error:
            log.error("the database takes no writes: %s", in_one_line(error))
            return False
        return True


def blueprint(service: Service) -> Blueprint:
    """Returns the blueprint of `/healthz`, `/readyz` and `security.txt`.

    These endpoints need no API key, have no rate limit, and show no secret.
    """
    write_trial = Trial(service.db)
    blueprint = Blueprint("health", __name__)
    add_path(blueprint, "/healthz", lambda: json_response({"ok": True}), "healthz")
    add_path(blueprint, "/readyz", lambda: readiness(service, write_trial), "readyz")
    add_path(
        blueprint,
        "/.well-known/security.txt",
        lambda: security_txt(service),
        "security",
    )
    return blueprint


def security_txt(service: Service) -> Response:
    """Returns security.txt, which says where to report a vulnerability (RFC 9116).

    Raises NotFound if the setting `security_contact` is empty.
    """
    contact = service.settings.security_contact
    if not contact:
        raise NotFound("there is nothing at this path")
    expires = iso(service.now() + CONTACT_LIFE)
    return Response(
        f"Contact: {contact}\nExpires: {expires}\n", content_type="text/plain"
    )


def readiness(service: Service, trial: Trial) -> Response:
    """Returns a response with status 200, or 503 if the shop does not work.

    The JSON object has `ok` for the whole service and for each component: the database,
    the check that finds payments, and the rate limits. A problem of the rate limits
    does not cause 503, since the shop works without a shared store of rate limits.
    """
    try:
        version = versions.version(service.db)
        state = state_in(service.db, service.settings, service.now())
        components = {
            "database": _database(version, trial),
            "check": _check(state, service.settings),
        }
    except PeeweeException:
        components = {"database": _NO_ANSWER, "check": _NO_ANSWER}
    is_ready = all(component["ok"] for component in components.values())
    # This comes after `is_ready`, since it is no reason for 503.
    components["rate_limits"] = _rate_limits(service)
    status = 503
    if is_ready:
        status = 200
    return json_response({"ok": is_ready, **components}, status)


def _rate_limits(service: Service) -> Component:
    if service.limiter.is_complete():
        return {"ok": True}
    problem = "the store does not answer: each process counts by itself"
    return {"ok": False, "problem": problem}


def _database(version: int | None, trial: Trial) -> Component:
    if version != versions.VERSION:
        problem = f"this program needs version {versions.VERSION}"
        return {"ok": False, "version": version, "problem": problem}
    if not trial.passes():
        return {"ok": False, "version": version, "problem": "it takes no writes"}
    return {"ok": True, "version": version}


def _check(state: State, settings: Settings) -> Component:
    """Returns the JSON about the last complete check, and about the blocks that are read."""
    progress = state.progress
    checked_at = None
    if state.checked_at:
        checked_at = iso(state.checked_at)
    component: Component = {
        "ok": state.payments == GREEN,
        "checked_at": checked_at,
        "height": None,
        "blocks_behind": 0,
        "tip_at": None,
        "previews_late": state.previews_late,
    }
    if progress is not None:
        component["height"] = progress.height
        component["blocks_behind"] = progress.behind
        component["tip_at"] = iso(progress.mined_at)
    if state.checked_at is None:
        component["problem"] = "no check has been complete yet"
    elif not component["ok"]:
        minutes = settings.check_max_age_min
        component["problem"] = f"not within the last {minutes} minutes"
    return component
