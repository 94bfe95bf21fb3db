"""API keys: issued, with a secret that is shown once, and revoked."""

from flask import Response

from btcpay.merchant_pages.visit import Visit
from btcpay.merchants import keys
from btcpay.values.errors import InvalidRequest
from btcpay.web.pages.languages import gettext
from storage.queries import keys as stored_keys

SCOPES = ("write", "read")
MOST_NAME = 60


def show(
    visit: Visit, status: int = 200, issued: keys.Issued | None = None, wrong: str = ""
) -> Response:
    """The newest first; those that work no more last."""
    rows = visit.service.db.rows(stored_keys.OF_MERCHANT, merchant_id=visit.merchant_id)
    rows.sort(key=lambda row: (row.revoked_at is not None, -row.created_at))
    return visit.page("keys.html", status, keys=rows, issued=issued, wrong=wrong)


def issue(visit: Visit) -> Response:
    """The key of this press: sent twice it is made once, and its secret shown once."""
    service, scope = visit.service, visit.form.get("scope", "")
    name = visit.form.get("name", "").strip()
    if scope not in SCOPES:
        raise InvalidRequest("the form names no kind of key")
    if len(name) > MOST_NAME or not name.isprintable():
        return show(visit, 400, wrong=gettext("One line of at most 60 characters."))
    with visit.once("key", stored_keys.BY_ID) as (id, is_made):
        if is_made:
            return visit.to("/keys", done="issued")
        network, owner_id = service.settings.network, visit.merchant_id
        issued = keys.issue(service.db, network, owner_id, scope, name, visit.now, id=id)
    return show(visit, issued=issued)


def revoke(visit: Visit, id: str) -> Response:
    """Ends a key for ever."""
    if visit.own(stored_keys.BY_ID, "key", id).revoked_at is None:
        keys.revoke(visit.service.db, id, visit.now)
    return visit.to("/keys", done="revoked")
