"""`/healthz` and `/readyz`: whether the process lives, and whether all that it needs is there."""

from datetime import timedelta
from typing import Any

from flask import Flask, Response
from peewee import PeeweeException

from btcpay.api import add_path, answer
from btcpay.instants import from_ms, iso
from btcpay.service import Service
from storage import meta, schema

Part = dict[str, Any]


def add(app: Flask, service: Service) -> None:
    """Serves both, without a key and outside the limits of the API; they tell no secret."""
    add_path(app, "/healthz", lambda: answer({"ok": True}), "healthz")
    add_path(app, "/readyz", lambda: readiness(service), "readyz")


def readiness(service: Service) -> Response:
    """200, or 503 when the database or the check fails; each part with its `ok`.

    Without the shared store of the rate limits the shop goes on, so that part is only shown.
    """
    try:
        found = schema.version(service.db)
        checked_at = meta.get(service.db, "checked_at")
        parts = {"database": _database(found), "check": _check(service, checked_at)}
    except PeeweeException:
        parts = {name: {"ok": False, "problem": "no answer"} for name in ("database", "check")}
    ready = all(part["ok"] for part in parts.values())
    parts["rate_limits"] = _rate_limits(service)
    response = answer({"ok": ready, **parts})
    response.status_code = 200 if ready else 503
    return response


def _database(found: str | None) -> Part:
    if found == schema.VERSION:
        return {"ok": True, "version": found}
    problem = f"this program needs version {schema.VERSION}"
    return {"ok": False, "version": found, "problem": problem}


def _check(service: Service, checked_at: str | None) -> Part:
    """Of the last complete check; one that is ahead of the clock says nothing about the present."""
    max_age_min = service.settings.check_max_age_min
    if checked_at is None:
        return {"ok": False, "checked_at": None, "problem": "no check has been complete yet"}
    at = from_ms(int(checked_at))
    if abs(service.now() - at) <= timedelta(minutes=max_age_min):
        return {"ok": True, "checked_at": iso(at)}
    problem = f"not within the last {max_age_min} minutes"
    return {"ok": False, "checked_at": iso(at), "problem": problem}


def _rate_limits(service: Service) -> Part:
    if service.limiter.is_complete():
        return {"ok": True}
    return {"ok": False, "problem": "the store is away: each process counts by itself"}
