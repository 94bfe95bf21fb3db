"""The pages of the shop's own settings. Each page has one form."""

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

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
    brand = visit.pages.brand(visit.merchant_id)
    new: Any = dict(preview or {})
    new["seller"] = new.get("name", brand.name) or visit.session.merchant
    brand = replace(brand, **new)
    values = _stored_values(visit, brand)
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


def _stored_values(visit: Visit, brand: merchants.BrandOnPages) -> dict[str, Any]:
    """Returns the values of the fields of all forms, by the field's name.

    They are columns of the merchant, of `brand`, and of the merchant's mail.
    """
    db = visit.service.db
    merchant = db.get(merchants.BY_ID, id=visit.merchant_id)
    mail = db.get_or_none(receivers.MAIL_OF, merchant_id=visit.merchant_id)
    # `name` is a column of the merchant too; the form has that of the brand.
    values = as_dict(merchant) | as_dict(brand) | as_dict(mail or receivers.NO_MAIL)
    if values["tax_percent"]:
        percent = Decimal(values["tax_percent"])
        values["tax_percent"] = formats.percent(percent, current_language())
    return values


def save(visit: Visit, form: str) -> Response:
    """Stores the form with this name, and redirects (303) to its page.

    Shows the form again if it is invalid, or if it requests a preview.
    """
    checked, field_errors = _check_fields(visit.form, form)
    wants_preview = form == "look" and "show" in visit.form
    if wants_preview and not field_errors:
        return show(visit, form, preview=checked)
    # A preview ignores the logo, since a form cannot show a chosen file again.
    if form == "look":
        field_errors |= _add_logo(visit, checked)
    if field_errors:
        return show(visit, form, field_errors)
    FORMS[form].store(visit, checked)
    answer = visit.redirect(f"{PATH}/{form}", done=_outcome(visit, checked))
    answer.headers["Location"] += "#save"  # the button that was pressed
    return answer


class _CheckedForm(NamedTuple):
    """The valid values of a form, and the messages about invalid ones, by field."""

    values: Fields
    errors: Fields


def _check_fields(entries: Mapping[str, str], form: str) -> _CheckedForm:
    """Checks the entered texts of the form with the name `form`, except a logo."""
    values = Fields()
    errors = Fields()
    for name, check in FORMS[form].checks.items():
        try:
            values[name] = check(entries.get(name, ""))
        except (CommandError, ValueError) as error:
            errors[name] = invisible_character_message(error) or advice()[name]
    has_only_unpaid = values.get("return_unpaid") and not entries.get("return_paid")
    if form == "return" and has_only_unpaid:
        errors["return_paid"] = gettext("This one is required if the other one is set.")
    question = doubt(entries, "address", values.get("address") or "")
    if question:
        errors["address"] = question
    return _CheckedForm(values, errors)


def _add_logo(visit: Visit, values: Fields) -> Fields:
    """Adds the columns of the uploaded logo to `values`; if it is removed, with None.

    Returns the error message, by its field; empty if the logo is valid or not changed.
    """
    if "remove" in visit.form:
        values.update({"logo": None, "logo_type": None, "logo_sha256": None})
        return {}
    file = request.files.get("logo")
    if not file:
        return {}
    try:
        values.update(branding.brand_columns(logo=file.read()))
    except CommandError:
        return {"logo": gettext("A PNG, JPEG or WebP image of at most 64 KiB.")}
    return {}


def _outcome(visit: Visit, values: Fields) -> str:
    """Returns the name of the message that the page shows after its form was stored.

    The message is another one if the form has set a currency that has no price now.
    """
    currency = values.get("currency")
    if currency:
        rate = visit.service.prices.rate_for(currency)
        if rate.current_price_or_none() is None:
            return "no_price"
    return "saved"


def views() -> list[tuple[str, str, View]]:
    """Returns the method, path and view function of each request: GET and POST of each form."""
    table: list[tuple[str, str, View]] = []
    for form in FORMS:
        table.append(("GET", f"{PATH}/{form}", partial(show, form=form)))
        table.append(("POST", f"{PATH}/{form}", partial(save, form=form)))
    return table
