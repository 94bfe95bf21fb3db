"""The shop's settings: branding, currency, time zone, wallet, mail, return URLs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from flask import Response, request

from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants import branding
from btcpay.merchants.account import MOST_IN_RANGE
from btcpay.merchants.merchants import set_brand, set_currency, set_mail, set_timezone
from btcpay.parts.merchant_pages.settings.doubts import doubt
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import CommandError, NotFound
from btcpay.values.money import CODES, checked_currency
from btcpay.values.texts import checked_line
from btcpay.values.times import checked_zone, places
from btcpay.web.pages.forms import invisible_character_message
from btcpay.web.pages.languages import gettext
from storage.queries import merchants, receivers
from storage.statement import as_dict, replace

USUAL_ACCENT = (
    "#2563eb"  # the colour in static/pages.css, used if a merchant has set none
)
MOST_DIGITS = 20  # maximum of digits in a typed number
Fields = dict[str, Any]


class Part(NamedTuple):
    """A form of the settings.

    `checks`: for each field, a function that returns the value to store. It raises
    CommandError or ValueError if the text is invalid. `store`: stores the values.
    """

    checks: Mapping[str, Callable[[str], Any]]
    store: Callable[[Visit, Any], object]


def show(
    visit: Visit,
    part: str = "",
    wrong: Fields | None = None,
    preview: Fields | None = None,
) -> Response:
    """Shows each field as it is stored. The fields of the form `part` are as typed.

    `wrong`: a message for each invalid field. `preview`: columns of the branding that
    are shown but not stored.
    """
    db = visit.service.db
    own = visit.merchant_id
    brand = visit.pages.brand(own)
    new: Any = dict(preview or {})
    new["seller"] = new.get("name", brand.name) or visit.session.merchant
    brand = replace(brand, **new)
    mail = db.get_or_none(receivers.MAIL_OF, merchant_id=own) or receivers.NO_MAIL
    values = as_dict(db.get(merchants.BY_ID, id=own)) | as_dict(brand) | as_dict(mail)
    if part:
        values |= {name: visit.form.get(name, "") for name in PARTS[part].checks}
    return visit.page(
        "settings.html",
        400 if wrong else 200,
        brand=brand,
        values=values,
        wrong=wrong or {},
        usual_accent=USUAL_ACCENT,
        proposed=formats.currency_of(request.accept_languages.best or ""),
        currencies=sorted(CODES),
        places=sorted({*places(), visit.session.timezone}),
        is_preview=preview is not None,
        is_only_owner=visit.is_only_owner,
        saved_form=visit.query.get("form", ""),
    )


def save(visit: Visit, part: str) -> Response:
    """Stores a form and redirects; for a mistake or a preview, shows the form again.

    Raises NotFound if there is no form with this name.
    """
    if part not in PARTS:
        raise NotFound("there are no such settings")
    checked = Fields()
    wrong = Fields()
    for name, check in PARTS[part].checks.items():
        try:
            checked[name] = check(visit.form.get(name, ""))
        except (CommandError, ValueError) as error:
            wrong[name] = invisible_character_message(error) or _advice()[name]
    if (
        part == "return"
        and checked.get("return_unpaid")
        and not visit.form.get("return_paid")
    ):
        wrong["return_paid"] = gettext("This one is required if the other one is set.")
    if question := doubt(visit.form, "address", checked.get("address") or ""):
        wrong["address"] = question
    is_shown = part == "look" and "show" in visit.form and not wrong
    if part == "look" and not is_shown:
        _check_logo(visit, checked, wrong)
    if wrong:
        return show(visit, part, wrong)
    if is_shown:
        return show(visit, part, preview=checked)
    PARTS[part].store(visit, checked)
    currency = checked.get("currency")
    is_unpriced = (
        currency
        and visit.service.prices.rate_for(currency).current_price_or_none() is None
    )
    done = "saved"
    if is_unpriced:
        done = "no_price"
    answer = visit.redirect("/settings", done=done, form=part)
    answer.headers["Location"] += f"#{part}"  # the card with the button
    return answer


def _check_logo(visit: Visit, checked: Fields, wrong: Fields) -> None:
    if "remove" in visit.form:
        checked |= dict.fromkeys(("logo", "logo_type", "logo_sha256"))
    elif file := request.files.get("logo"):
        try:
            checked |= branding.brand_columns(logo=file.read())
        except CommandError:
            wrong["logo"] = gettext("A PNG, JPEG or WebP image of at most 64 KiB.")


def _store_brand(visit: Visit, change: Any) -> None:
    set_brand(visit.service.db, visit.merchant_id, change)


def _store_counting(visit: Visit, change: Fields) -> None:
    """Stores the currency, and the time zone if it has changed.

    A new time zone makes the sums of all days be computed again.
    """
    db = visit.service.db
    owner = visit.merchant_id
    set_currency(db, owner, change["currency"])
    if change["timezone"] != visit.session.timezone:
        set_timezone(db, owner, change["timezone"])


def _or_none(check: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: check(text) if text.strip() else None


def _accent(text: str) -> str | None:
    if text.strip().lower() in ("", USUAL_ACCENT):
        return None
    return branding.checked_accent(text)


def _gap_limit(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError
    limit = int(text)
    if not 1 <= limit <= MOST_IN_RANGE:
        raise ValueError
    return limit


def _language(text: str) -> str:
    if text not in LANGUAGES:
        raise CommandError("there is no such language")
    return text


PARTS = {
    "look": Part(
        {
            "name": _or_none(partial(checked_line, "name")),
            "accent": _accent,
            "contact": _or_none(partial(checked_line, "contact")),
        },
        _store_brand,
    ),
    "counting": Part(
        {"currency": checked_currency, "timezone": checked_zone}, _store_counting
    ),
    "wallet": Part(
        {"wallet_gap_limit": _gap_limit},
        lambda visit, gap: visit.service.db.run(
            merchants.SAY_GAP, id=visit.merchant_id, **gap
        ),
    ),
    "mail": Part(
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
    "return": Part(
        {name.name: _or_none(branding.checked_url) for name in merchants.RETURNS},
        _store_brand,
    ),
}


def _advice() -> Mapping[str, str]:
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
        "return_paid": url,
        "return_unpaid": url,
    }
