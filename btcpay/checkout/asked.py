"""A payment link's questions to its payer: an e-mail address, a name, a note to the seller."""

from collections.abc import Mapping, Sequence

from btcpay.settings.mail_settings import checked_address
from btcpay.web.pages.languages import gettext
from storage.models import PaymentLink

MOST = {"name": 100, "note": 500}  # characters
Texts = dict[str, str]


def asks_of(link: PaymentLink) -> Texts:
    """The questions that the link asks, each with "may" or "must"."""
    asks = {"email": link.ask_email, "name": link.ask_name, "note": link.ask_note}
    return {name: how for name, how in asks.items() if how != "no"}


def answers(link: PaymentLink, fields: Mapping[str, Sequence[str]]) -> tuple[Texts, Texts]:
    """The answers as they were typed, and a sentence for each that cannot be taken."""
    typed, wrong = Texts(), Texts()
    for name, how in asks_of(link).items():
        text = typed[name] = fields.get(name, [""])[0].replace("\r\n", "\n").strip()
        if not text and how == "must":
            wrong[name] = gettext("The seller needs this.")
        elif text and (problem := _problem(name, text)):
            wrong[name] = problem
    return typed, wrong


def _problem(name: str, text: str) -> str:
    if name == "email":
        return "" if _is_address(text) else gettext("This is not an e-mail address.")
    plain = text.replace("\n", " ") if name == "note" else text
    if len(text) <= MOST[name] and plain.isprintable():
        return ""
    return gettext("Enter plain text of at most %(most)s characters.", most=str(MOST[name]))


def _is_address(text: str) -> bool:
    try:
        return bool(checked_address(text))
    except ValueError:
        return False
