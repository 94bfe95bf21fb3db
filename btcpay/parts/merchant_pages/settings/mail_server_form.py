"""The form of the mail server: checks the fields, and stores all of them together."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from btcpay.parts.merchant_pages.settings.doubts import doubt
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.settings.mail_settings import (
    MAX_PORT,
    checked_address,
    checked_host,
    checked_login,
    checked_port,
    checked_sender_name,
)
from btcpay.values.amounts import parse_whole_number
from btcpay.web.pages.languages import gettext
from storage.models import StoredMailServer
from storage.queries import mail_servers, merchants
from storage.statement import as_dict, blank

# The fields that are shown again with the entered text if the form is invalid.
REPEATED_FIELDS = ("host", "encryption", "port", "user", "sender", "sender_name")
Fields = dict[str, str]


class FormValues(NamedTuple):
    """The form's checked values. If `password` is empty, the stored password is kept."""

    host: str
    port: int
    is_tls: int
    user_name: str
    password: str
    sender_name: str
    sender_address: str

    def is_same_login(self, row: StoredMailServer) -> bool:
        """True if these values have the host, the port and the user of the stored row.

        The stored password may be kept only in this case. Otherwise, somebody with access
        to the browser for a minute could have the password sent to a server of their own.
        """
        stored = (row.host, row.port, row.user_name)
        return stored == (self.host, self.port, self.user_name)


def stored_fields(row: StoredMailServer | None) -> Fields:
    """Returns the stored values as fields of the form, without the password."""
    if row is None:
        return dict.fromkeys(REPEATED_FIELDS, "") | {"encryption": "tls"}
    return {
        "host": row.host,
        "encryption": "tls" if row.is_tls else "starttls",
        "port": str(row.port),
        "user": row.user_name,
        "sender": row.sender_address,
        "sender_name": row.sender_name,
    }


def _port(text: str, is_tls: bool) -> int:
    """Returns the port that was entered, with digits of any script.

    If `text` is "", returns the usual port of the encryption.
    """
    if text:
        text = str(parse_whole_number(text, 1, MAX_PORT))
    return checked_port(text, is_tls)


def check(form: Fields, field_errors: Fields) -> FormValues | None:
    """Returns the checked values; None if a field is invalid.

    Adds an error message to `field_errors` for each invalid field.
    """
    is_tls = form.get("encryption") != "starttls"
    values = _parse_fields(form, is_tls, field_errors)
    if field_errors:
        return None
    question = doubt(form, "sender", values["sender"])
    if question:
        field_errors["sender"] = question
    if values["password"] and not values["user"]:
        field_errors["user"] = gettext("A password needs a user.")
    if field_errors:
        return None
    return FormValues(
        host=values["host"],
        port=values["port"],
        is_tls=int(is_tls),
        user_name=values["user"],
        password=values["password"],
        sender_name=values["sender_name"],
        sender_address=values["sender"],
    )


def _parse_fields(form: Fields, is_tls: bool, field_errors: Fields) -> dict[str, Any]:
    """Returns the value of each valid field, by the field's name.

    Adds an error message to `field_errors` for each other field.
    """
    parsers: dict[str, Callable[[str], Any]] = {
        "host": checked_host,
        "port": partial(_port, is_tls=is_tls),
        "user": checked_login,
        "password": checked_login,
        "sender": checked_address,
        "sender_name": checked_sender_name,
    }
    values: dict[str, Any] = {}
    for name, parse in parsers.items():
        text = form.get(name, "")
        # A password may begin or end with blanks.
        if name != "password":
            text = text.strip()
        try:
            values[name] = parse(text)
        except ValueError:
            field_errors[name] = _advice()[name]
    return values


def _advice() -> Mapping[str, str]:
    """Returns, for each field, the sentence that is shown if its value is invalid."""
    login = gettext("At most 1000 letters, digits and signs of ASCII.")
    return {
        "host": gettext(
            "A host such as mail.example.com, with no smtp:// and no port."
        ),
        "port": gettext("A whole number from 1 to 65535."),
        "user": login,
        "password": login,
        "sender": gettext("This is not an e-mail address."),
        "sender_name": gettext("One line of at most 200 characters."),
    }


def store(visit: Visit, values: FormValues) -> Fields:
    """Stores the values of the form. Returns {}, or an error message by its field.

    If no password was entered, the stored one is kept, but only for the same server and
    user. If there is a user but no password, nothing is stored, and the result has the
    message about the password.
    """
    db = visit.service.db
    with db.write():
        # If two forms are sent at the same time, the second waits for the first.
        db.get(merchants.LOCKED, id=visit.merchant_id)
        row = db.get_or_none(mail_servers.GET)
        password = values.password
        if not password and row is not None and values.is_same_login(row):
            password = row.password
        if values.user_name and not password:
            return {"password": gettext("Please type the password.")}
        new = blank(StoredMailServer, **values._asdict())
        columns = as_dict(new) | {"id": mail_servers.ONLY, "password": password}
        db.run(mail_servers.PUT, **columns)
    return {}
