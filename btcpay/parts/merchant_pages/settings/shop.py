"""The pages of the shop's own settings. Each page has one form."""

from decimal import Decimal
from functools import partial
from typing import Any

from flask import Response, request

from btcpay.languages import formats
from btcpay.merchants import branding
from btcpay.parts.merchant_pages.settings.doubts import doubt
from btcpay.parts.merchant_pages.settings.forms import FORMS, Fields, advice
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.colours import USUAL_ACCENT
from btcpay.values.errors import CommandError
from btcpay.values.money import CODES
from btcpay.values.times import places
from btcpay.web.pages.forms import invisible_character_message
from btcpay.web.pages.languages import current_language, gettext
from btcpay.web.pages.render import View
from storage.queries import merchants, receivers
from storage.statement import as_dict, replace

PATH = "/settings"


def show(
    visit: Visit,
    form: str,
    field_errors: Fields | None = None,
    preview: Fields | None = None,
) -> Response:
    """Shows the page of the form with this name.

    The form has the stored values. If `field_errors` or `preview` is given, it has the
    entered values instead. `field_errors` has a message for each invalid field.
    `preview` has branding values that were not stored; the page shows how they look.
    """
    db = visit.service.db
    own = visit.merchant_id
    brand = visit.pages.brand(own)
    new: Any = dict(preview or {})
    new["seller"] = new.get("name", brand.name) or visit.session.merchant
    brand = replace(brand, **new)
    mail = db.get_or_none(receivers.MAIL_OF, merchant_id=own) or receivers.NO_MAIL
    values = as_dict(db.get(merchants.BY_ID, id=own)) | as_dict(brand) | as_dict(mail)
    if values["tax_percent"]:
        percent = Decimal(values["tax_percent"])
        values["tax_percent"] = formats.percent(percent, current_language())
    if field_errors is not None or preview is not None:
        values |= {name: visit.form.get(name, "") for name in FORMS[form].checks}
    status = 200
    if field_errors:
        status = 400
    return visit.page(
        f"settings/{form}.html",
        status,
        form=form,
        brand_preview=brand,
        values=values,
        field_errors=field_errors or {},
        usual_accent=USUAL_ACCENT,
        proposed=formats.currency_of(request.accept_languages.best or ""),
        currencies=sorted(CODES),
        places=sorted({*places(), visit.session.timezone}),
        is_preview=preview is not None,
        is_only_owner=visit.is_only_owner,
    )


def save(visit: Visit, form: str) -> Response:
    """Stores the form with this name, and redirects (303) to its page.

    Shows the form again if it is invalid, or if it requests a preview.
    """
    checked = Fields()
    field_errors = Fields()
    for name, check in FORMS[form].checks.items():
        try:
            checked[name] = check(visit.form.get(name, ""))
        except (CommandError, ValueError) as error:
            field_errors[name] = invisible_character_message(error) or advice()[name]
    has_only_unpaid = checked.get("return_unpaid") and not visit.form.get("return_paid")
    if form == "return" and has_only_unpaid:
        field_errors["return_paid"] = gettext(
            "This one is required if the other one is set."
        )
    question = doubt(visit.form, "address", checked.get("address") or "")
    if question:
        field_errors["address"] = question
    wants_preview = form == "look" and "show" in visit.form
    is_preview = wants_preview and not field_errors
    if form == "look" and not is_preview:
        _check_logo(visit, checked, field_errors)
    if field_errors:
        return show(visit, form, field_errors)
    if is_preview:
        return show(visit, form, preview=checked)
    FORMS[form].store(visit, checked)
    done = "saved"
    currency = checked.get("currency")
    if currency:
        rate = visit.service.prices.rate_for(currency)
        if rate.current_price_or_none() is None:
            done = "no_price"
    answer = visit.redirect(f"{PATH}/{form}", done=done)
    answer.headers["Location"] += "#save"  # the button that was pressed
    return answer


def _check_logo(visit: Visit, checked: Fields, field_errors: Fields) -> None:
    if "remove" in visit.form:
        checked |= dict.fromkeys(("logo", "logo_type", "logo_sha256"))
    elif file := request.files.get("logo"):
        try:
            checked |= branding.brand_columns(logo=file.read())
        except CommandError:
            field_errors["logo"] = gettext(
                "A PNG, JPEG or WebP image of at most 64 KiB."
            )


def views() -> list[tuple[str, str, View]]:
    """Returns the method, path and view function of each request: GET and POST of each form."""
    table: list[tuple[str, str, View]] = []
    for form in FORMS:
        table.append(("GET", f"{PATH}/{form}", partial(show, form=form)))
        table.append(("POST", f"{PATH}/{form}", partial(save, form=form)))
    return table
