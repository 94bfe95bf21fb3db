"""The form of the mail server: what is typed is checked, and stored in one step."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from btcpay.parts.merchant_pages.settings.doubts import doubt
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.settings.mail_settings import (
    checked_address,
    checked_host,
    checked_login,
    checked_port,
    checked_sender_name,
)
from btcpay.web.pages.languages import gettext
from storage.models import StoredMailServer
from storage.queries import mail_servers, merchants
from storage.statement import as_dict, blank

# The fields that are shown again as they were typed.
SHOWN = ("host", "encryption", "port", "user", "sender", "sender_name")
Fields = dict[str, str]


class Typed(NamedTuple):
    """The form's values, checked; `password` is empty to keep the stored one."""

    host: str
    port: int
    is_tls: int
    user_name: str
    password: str
    sender_name: str
    sender_address: str

    def is_same_login(self, row: StoredMailServer) -> bool:
        """True if the stored password may be sent where these values say.

        Otherwise whoever has a session for a minute could have it sent to a server of
        his own.
        """
        stored = (row.host, row.port, row.user_name)
        return stored == (self.host, self.port, self.user_name)


def stored_fields(row: StoredMailServer | None) -> Fields:
    """Returns the fields of the form as they are stored, without the password."""
    if row is None:
        return dict.fromkeys(SHOWN, "") | {"encryption": "tls"}
    return {
        "host": row.host,
        "encryption": "tls" if row.is_tls else "starttls",
        "port": str(row.port),
        "user": row.user_name,
        "sender": row.sender_address,
        "sender_name": row.sender_name,
    }


def check(form: Fields, wrong: Fields) -> Typed | None:
    """Returns the checked values; None if there are mistakes.

    Adds to `wrong` a message for each field that has one.
    """
    is_tls = form.get("encryption") != "starttls"
    checks: dict[str, Callable[[str], Any]] = {
        "host": checked_host,
        "port": lambda text: checked_port(text, is_tls),
        "user": checked_login,
        "password": checked_login,
        "sender": checked_address,
        "sender_name": checked_sender_name,
    }
    values: dict[str, Any] = {}
    for name, parse in checks.items():
        text = form.get(name, "")
        if name != "password":
            text = text.strip()
        try:
            values[name] = parse(text)
        except ValueError:
            wrong[name] = _advice()[name]
    if wrong:
        return None
    if question := doubt(form, "sender", values["sender"]):
        wrong["sender"] = question
    if values["password"] and not values["user"]:
        wrong["user"] = gettext("A password needs a user.")
    if wrong:
        return None
    return Typed(
        values["host"],
        values["port"],
        int(is_tls),
        values["user"],
        values["password"],
        values["sender_name"],
        values["sender"],
    )


def _advice() -> Mapping[str, str]:
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


def store(visit: Visit, typed: Typed, wrong: Fields) -> None:
    """Stores the values, with the stored password if none is typed and it may be kept.

    Otherwise it adds to `wrong` that the password is missing, and stores nothing.
    """
    db = visit.service.db
    with db.write():
        # Of two forms at the same time, the second sees what the first has stored.
        db.get(merchants.LOCKED, id=visit.merchant_id)
        row = db.get_or_none(mail_servers.GET)
        password = typed.password
        if not password and row and typed.is_same_login(row):
            password = row.password
        if typed.user_name and not password:
            wrong["password"] = gettext("Please type the password.")
            return
        new = blank(StoredMailServer, **typed._asdict())
        values = as_dict(new) | {"id": mail_servers.ONLY, "password": password}
        db.run(mail_servers.PUT, **values)
