"""The forms of the settings: how each field is checked, and how the form is stored.

A new page of settings needs an entry in FORMS, a template in
`templates/merchant/settings/` that extends `settings_form.html`, and a line in
`settings.html`, the list of all pages.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants import branding, business
from btcpay.merchants.account import MOST_IN_RANGE
from btcpay.merchants.merchants import set_brand, set_currency, set_mail, set_timezone
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.settings.mail_settings import checked_address
from btcpay.values.amounts import parse_whole_number
from btcpay.values.colours import USUAL_ACCENT
from btcpay.values.errors import CommandError
from btcpay.values.money import checked_currency
from btcpay.values.texts import checked_line
from btcpay.values.times import checked_zone
from btcpay.web.pages.languages import gettext
from storage.queries import merchants

Fields = dict[str, Any]


class Form(NamedTuple):
    """A form of the settings.

    - `checks`: a function for each field, by the field's name. The function gets the
      text of the field, and returns the value to store. It raises CommandError or
      ValueError if the text is invalid.
    - `store`: a function that gets the visit and the values of all fields, by name, and
      stores them.
    """

    checks: Mapping[str, Callable[[str], Any]]
    store: Callable[[Visit, Any], object]


def _store_brand(visit: Visit, change: Any) -> None:
    set_brand(visit.service.db, visit.merchant_id, change)


def _store_counting(visit: Visit, change: Fields) -> None:
    """Stores the currency, and the time zone if it has changed.

    A new time zone is costly: the sums of all days are computed again.
    """
    db = visit.service.db
    set_currency(db, visit.merchant_id, change["currency"])
    if change["timezone"] != visit.session.timezone:
        set_timezone(db, visit.merchant_id, change["timezone"])


def _or_none(check: Callable[[str], Any]) -> Callable[[str], Any]:
    """Returns a check that replaces a blank text by None, and passes others to `check`."""
    return lambda text: check(text) if text.strip() else None


def _accent(text: str) -> str | None:
    if text.strip().lower() in ("", USUAL_ACCENT):
        return None
    return branding.checked_accent(text)


def _gap_limit(text: str) -> int:
    return parse_whole_number(text, 1, MOST_IN_RANGE)


def _language(text: str) -> str:
    if text not in LANGUAGES:
        raise CommandError("there is no such language")
    return text


FORMS = {
    "look": Form(
        {
            "name": _or_none(partial(checked_line, "name")),
            "accent": _accent,
            "contact": _or_none(partial(checked_line, "contact")),
        },
        _store_brand,
    ),
    "counting": Form(
        {"currency": checked_currency, "timezone": checked_zone}, _store_counting
    ),
    "wallet": Form(
        {"wallet_gap_limit": _gap_limit},
        lambda visit, gap: visit.service.db.run(
            merchants.SET_GAP_LIMIT, id=visit.merchant_id, **gap
        ),
    ),
    "mail": Form(
        {
            "address": _or_none(lambda text: checked_address(text.strip())),
            "receipts": lambda text: int(bool(text)),
            "evening": lambda text: int(bool(text)),
            "language": _language,
        },
        lambda visit, mail: set_mail(
            visit.service.db,
            visit.merchant_id,
            mail,
            visit.now,
        ),
    ),
    "receipt": Form(
        {
            "business_address": business.checked_business_address,
            "tax_number": _or_none(partial(checked_line, "tax number")),
            "tax_percent": business.checked_tax_percent,
        },
        _store_brand,
    ),
    "return": Form(
        {name.name: _or_none(branding.checked_url) for name in merchants.RETURNS},
        _store_brand,
    ),
}


def advice() -> Mapping[str, str]:
    """Returns, for each field, the sentence that is shown if its value is invalid."""
    url = gettext("This must be a web address such as https://shop.example.com/orders.")
    listed = gettext("Please choose one from the list.")
    accent = gettext(
        "This colour is too light or too dark to read text on it. Choose another one."
    )
    return {
        "name": gettext("One line of at most 60 characters."),
        "accent": accent,
        "contact": gettext("One line of at most 200 characters."),
        "currency": listed,
        "timezone": listed,
        "wallet_gap_limit": gettext("A whole number, such as 100."),
        "address": gettext("This is not an e-mail address."),
        "language": listed,
        "business_address": gettext("At most six lines and 300 characters."),
        "tax_number": gettext("One line of at most 60 characters."),
        "tax_percent": gettext("A percentage above 0 and up to 100."),
        "return_paid": url,
        "return_unpaid": url,
    }
