"""The pages of API keys, and of each key's latest requests. A secret is shown only once."""

from typing import Any

from flask import Response

from btcpay.merchants import keys
from btcpay.parts.merchant_pages.developers.key_requests import OF_KEY, load
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import CommandError, InvalidRequest
from btcpay.values.times import to_ms
from btcpay.web.pages.forms import invisible_character_message
from btcpay.web.pages.languages import gettext
from storage.queries import keys as stored_keys

SCOPES = ("write", "read")
MOST_REVOKED = 50  # the number of keys that no longer work, on the page


def show_keys(visit: Visit, status: int = 200, **values: Any) -> Response:
    """Shows the API keys: first those that work, then up to MOST_REVOKED of the others.

    Both groups are sorted by age, newest first. `status` is the HTTP status. `values`
    are further values for the template, such as a key that was just issued.
    """
    rows = visit.service.db.rows(stored_keys.OF_MERCHANT, merchant_id=visit.merchant_id)
    rows.reverse()
    now_ms = to_ms(visit.now)
    working = [row for row in rows if _works(row, now_ms)]
    others = [row for row in rows if not _works(row, now_ms)]
    return visit.page(
        "keys.html",
        status,
        keys=working + others[:MOST_REVOKED],
        working_ids={row.id for row in working},
        prefix=keys.secret_prefix(visit.service.settings.network),
        **values,
    )


def _works(row: stored_keys.ListedKey, now_ms: int) -> bool:
    """True if the key works: it is not revoked, and its grace period has not ended.

    A key that was replaced by a new one has a grace period until `revoked_ms`. A revoked
    key stays revoked even if the clock steps back.
    """
    if row.is_revoked:
        return False
    return row.revoked_ms is None or row.revoked_ms > now_ms


def issue_key(visit: Visit) -> Response:
    """Issues an API key, and shows its secret only this once.

    If the browser sends the same form twice, only one key is issued.
    """
    scope = visit.form.get("scope", "")
    text = visit.form.get("name", "")
    if scope not in SCOPES:
        raise InvalidRequest("the form names no kind of key")
    try:
        name = keys.checked_name(text)
    except CommandError as refusal:
        error = invisible_character_message(refusal) or gettext(
            "One line of at most 60 characters."
        )
        return show_keys(visit, 400, error=error, entry=text)
    try:
        issued = _issue_once(visit, scope, name)
    except keys.NoRoom:
        error = gettext("There are already 100 keys. Revoke one first.")
        return show_keys(visit, 400, error=error, entry=text)
    if issued is None:
        return visit.redirect("/keys", done="issued")
    return show_keys(visit, issued=issued)


def _issue_once(visit: Visit, scope: str, name: str) -> keys.IssuedKey | None:
    """Issues the key of this form; returns None if the form has issued it before.

    Raises NoRoom if the merchant already has the maximum number of keys.
    """
    service = visit.service
    with visit.create_once("key", stored_keys.BY_ID) as (id, exists):
        if exists:
            return None
        keys.require_room(service.db, visit.merchant_id, visit.now)
        return keys.issue(
            service.db,
            service.settings.network,
            visit.merchant_id,
            scope,
            name,
            visit.now,
            id=id,
        )


def revoke_key(visit: Visit, id: str) -> Response:
    row = visit.get_or_404(stored_keys.BY_ID, "key", id)
    if row.revoked_ms is None:
        keys.revoke(visit.service.db, id, visit.now)
    return visit.redirect("/keys", done="revoked")


def show_key(visit: Visit, id: str) -> Response:
    """Shows a key, and its latest requests, newest first.

    The requests are sorted here, since each process stores its own requests together.
    """
    row = visit.get_or_404(stored_keys.BY_ID, "key", id)
    log = visit.service.db.get_or_none(OF_KEY, key_id=id)
    now_ms = to_ms(visit.now)
    requests = []
    if log:
        requests = load(log.requests, now_ms)
    requests.sort(key=lambda request: -request.at_ms)
    return visit.page(
        "key.html",
        key=row,
        ends_ms=row.revoked_ms or row.expires_ms,
        now_ms=now_ms,
        prefix=keys.secret_prefix(visit.service.settings.network),
        requests=requests,
    )
