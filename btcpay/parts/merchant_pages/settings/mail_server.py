"""The page of the mail server. It exists only if the service has a single merchant."""

from typing import Any

from flask import Response

from btcpay.notify.mail.message import message_of
from btcpay.notify.mail.server import is_in_settings, mail_account
from btcpay.notify.mail.shop_texts import trial
from btcpay.notify.mail.trial import Outcome, send_test
from btcpay.parts.merchant_pages.settings.mail_server_form import (
    REPEATED_FIELDS,
    Fields,
    check,
    store,
    stored_fields,
)
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.settings.mail_settings import MAX_LOGIN, MAX_NAME, checked_address
from btcpay.values.errors import NotFound
from btcpay.values.ids import ID_CHARACTERS, random_base62
from btcpay.values.times import to_ms
from btcpay.web.pages.languages import current_language, gettext
from storage.queries import mail_servers, merchants, receivers

PATH = "/settings/mail-server"
CONFLICT = 409


def show(visit: Visit, status: int = 200, **values: Any) -> Response:
    """Shows the mail server in use, a form for a test mail, and a form to set the server.

    If environment variables set the server, the form to set it is left out. `values`
    are further values for the template: the outcome of a test, or the `entries` and
    `field_errors` of an invalid form, which replace the stored values. Raises NotFound
    if the session is not the owner's, or if the service has several merchants.
    """
    _require_owner(visit)
    service = visit.service
    row = service.db.get_or_none(mail_servers.GET)
    mail = service.db.get_or_none(receivers.MAIL_OF, merchant_id=visit.merchant_id)
    account = mail_account(service.settings, service.db)
    # The address of the test mail: where the merchant gets mail, else the sender's.
    to = ""
    if account:
        to = account.sender.address
        if mail and mail.address:
            to = mail.address
    defaults = {"to": to, "entries": stored_fields(row), "field_errors": {}}
    return visit.page(
        "mail_server.html",
        status,
        account=account,
        settings=service.settings,
        is_fixed=is_in_settings(service.settings),
        keeps_password=bool(row and row.password),
        most_login=MAX_LOGIN,
        most_name=MAX_NAME,
        **defaults | values,
    )


def save(visit: Visit) -> Response:
    """Stores the mail server and redirects (303). Shows an invalid form again.

    A form never shows a password. So the owner must enter the password again if the form
    was invalid. If environment variables set the mail server, nothing is stored (409).
    """
    _require_owner(visit)
    if is_in_settings(visit.service.settings):
        return show(visit, CONFLICT)
    form = visit.form
    field_errors: Fields = {}
    values = check(form, field_errors)
    if values:
        field_errors |= store(visit, values)
    if not field_errors:
        return visit.redirect(PATH, done="saved")
    if form.get("password"):
        field_errors.setdefault("password", gettext("Please type the password again."))
    entries = {name: form.get(name, "") for name in REPEATED_FIELDS}
    return show(visit, 400, entries=entries, field_errors=field_errors)


def remove(visit: Visit) -> Response:
    _require_owner(visit)
    visit.service.db.run(mail_servers.REMOVE)
    return visit.redirect(PATH, done="removed")


def test(visit: Visit) -> Response:
    """Sends a test mail to the entered address, and shows the mail server's response.

    Raises NotFound if no mail server is set.
    """
    _require_owner(visit)
    service = visit.service
    account = mail_account(service.settings, service.db)
    if account is None:
        raise NotFound("there is no mail server")
    text = visit.form.get("to", "").strip()
    try:
        to = checked_address(text)
    except ValueError:
        field_errors = {"to": gettext("This is not an e-mail address.")}
        return show(visit, 400, to=text, field_errors=field_errors)
    mail = trial(visit.session.seller, current_language())
    id = f"test.{random_base62(ID_CHARACTERS)}.{to_ms(visit.now)}"
    brand = service.db.get(merchants.MAIL_BRAND, merchant_id=visit.merchant_id)
    message = message_of(mail, brand, account.sender, to, id=id, at=visit.now)
    outcome = send_test(account, message, to)
    return show(visit, to=to, outcome=outcome, message=_sentence(outcome, to))


def _require_owner(visit: Visit) -> None:
    """Raises NotFound if the session is not the owner's, or if there are several merchants."""
    if not visit.is_only_owner:
        raise NotFound("there is no such page")


def _sentence(outcome: Outcome, to: str) -> str:
    """Returns a sentence about the outcome of a test mail to the address `to`."""
    if outcome.fault is None:
        return gettext("The mail server has accepted the test mail to %(to)s.", to=to)
    return {
        "busy": gettext("A test mail is just being sent. Try again in half a minute."),
        "unreachable": gettext(
            "The mail server cannot be reached. Check host, port and encryption."
        ),
        "slow": gettext(
            "The mail server did not answer in time. Check host, port and encryption."
        ),
        "certificate": gettext(
            "The mail server's certificate is not valid for this host."
        ),
        "tls": gettext(
            "No encrypted connection could be made. Try the other kind of encryption."
        ),
        "no_tls": gettext(
            "The mail server offers no encryption, so the password was not sent."
        ),
        "login": gettext("The mail server does not accept this user and password."),
        "refused": gettext("The mail server has refused the mail."),
        "in_doubt": gettext(
            "The mail server did not answer to the whole mail. It may arrive all the same."
        ),
    }[outcome.fault]
