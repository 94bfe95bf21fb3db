"""Parses the till's form: an amount or a sum of amounts, a note, and a gratuity."""

from decimal import Decimal
from typing import NamedTuple

from btcpay.languages import formats
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.money import round_money
from btcpay.web.pages.forms import AmountRefused
from btcpay.web.pages.languages import current_language

LONGEST_SUM = 120  # characters: a dozen amounts
MAX_NOTE_CHARACTERS = 200
# The value of the field `tip` if the customer has entered an amount in `tip_amount`.
OTHER_GRATUITY = "other"


class Sale(NamedTuple):
    """The amount of a sale without its gratuity, and the sale's note."""

    amount: Decimal
    note: str


class GratuityRefused(AmountRefused):
    """The entered gratuity is invalid. The message is in the language of the request."""


def read_sale(visit: Visit) -> Sale:
    """Returns the sale in the form: the amount without gratuity, and the note.

    The form has a pressed suggestion, an entered amount, or an entered sum such as
    `4.20+3`. If no note was entered, the amounts of a sum become the note. Raises
    AmountRefused if an amount is invalid.
    """
    form = visit.form
    # The value of a suggestion's button is the amount, a blank and the note.
    suggestion, _, suggested_note = form.get("suggested", "").partition(" ")
    note = suggested_note or form.get("note", "")
    if suggestion:
        return Sale(visit.written_amount(suggestion), note)
    amounts = _read_sum(visit, form.get("amount", ""))
    if len(amounts) > 1 and not note:
        note = _note_of(amounts, visit.currency)
    return Sale(sum(amounts, Decimal(0)), note)


def _read_sum(visit: Visit, text: str) -> list[Decimal]:
    """Returns the amounts that `+` separates. Raises AmountRefused if one is invalid.

    A text with more than LONGEST_SUM characters counts as a single amount.
    """
    parts = text.split("+")
    if len(parts) == 1 or len(text) > LONGEST_SUM:
        return [visit.amount(text)]
    try:
        return [visit.amount(part) for part in parts]
    except AmountRefused as refusal:
        # The two readings of one part must not become buttons for the whole sum.
        raise AmountRefused(str(refusal)) from None


def _note_of(amounts: list[Decimal], currency: str) -> str:
    """Returns the amounts of a sum as a note; "" if the note would be too long."""
    language = current_language()
    note = " + ".join(formats.plain(amount, currency, language) for amount in amounts)
    if len(note) > MAX_NOTE_CHARACTERS:
        return ""
    return note


def gratuity_percents(visit: Visit) -> list[str]:
    """Returns the percentages that the shop offers, such as ["5", "10"]."""
    return (visit.session.gratuity_percents or "").split()


def read_gratuity(visit: Visit, amount: Decimal) -> Decimal:
    """Returns the gratuity that was chosen in the form.

    Returns 0 if none was chosen, or if the shop does not offer the chosen one. Raises
    GratuityRefused if the customer has entered a gratuity that is not an amount.
    """
    choice = visit.form.get("tip", "")
    if choice == OTHER_GRATUITY and gratuity_percents(visit):
        try:
            return visit.amount(visit.form.get("tip_amount", ""))
        except AmountRefused as refusal:
            raise GratuityRefused(str(refusal)) from None
    return gratuity_of(visit, amount, choice)


def gratuity_of(visit: Visit, amount: Decimal, percent: str) -> Decimal:
    """Returns `percent` percent of the amount; 0 if the shop does not offer this percentage."""
    if percent not in gratuity_percents(visit):
        return round_money(Decimal(0), visit.currency)
    return round_money(amount * int(percent) / 100, visit.currency)
