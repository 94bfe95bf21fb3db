"""The texts of mails to a merchant that are about the shop rather than an invoice."""

from collections.abc import Sequence
from datetime import date, tzinfo
from typing import NamedTuple

from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail.message import MailText
from btcpay.values.money import Money


def overdue(since_ms: int, zone: tzinfo, language: str) -> MailText:
    """To the merchant: no check has been complete since that time."""
    gettext = catalog(language).gettext
    since = gettext("No check of the blockchain has completed since %(time)s.")
    return MailText(
        language,
        gettext("Payments are not being found"),
        [
            since % {"time": formats.moment(since_ms, language, zone)},
            gettext(
                "Until one does, no invoice is marked as paid. No payment is lost: it is in your"
                " wallet, and the next complete check will find it."
            ),
            gettext("For details, run %(command)s on the server.")
            % {"command": "blocktill doctor"},
        ],
    )


class Day(NamedTuple):
    """What a day has brought: a sum for each currency, and how many payments."""

    day: date
    took: Sequence[Money]
    payments: int


def evening(
    told: Day,
    before: Day,
    is_today: bool,
    wanting: int,
    is_found: bool,
    url: str,
    language: str,
) -> MailText:
    """To the merchant: what the day has brought, and whether something needs them.

    The whole day before stands below, with what was sold after its own mail.
    """
    words = catalog(language)
    needs = words.gettext("nothing needs you")
    if not is_found:
        needs = words.gettext("payments are not being found")
    elif wanting:
        needs = words.ngettext(
            "%(number)s invoice needs you", "%(number)s invoices need you", wanting
        )
    amount, payments = _brought(told, language)
    said = words.gettext("%(day)s: %(amount)s in %(payments)s; %(needs)s") % {
        "day": words.gettext("Today") if is_today else formats.day(told.day, language),
        "amount": amount,
        "payments": payments,
        "needs": needs % {"number": formats.whole(wanting, language)},
    }
    earlier = formats.day(before.day, language), " · ".join(_brought(before, language))
    return MailText(
        language, said, [said], [earlier], (words.gettext("Open your shop"), url)
    )


def _brought(told: Day, language: str) -> tuple[str, str]:
    """The sums, and the number of payments."""
    came = catalog(language).ngettext(
        "%(number)s payment", "%(number)s payments", told.payments
    )
    amount = " + ".join(formats.format_money(one, language) for one in told.took)
    return amount, came % {"number": formats.whole(told.payments, language)}


def login(seller: str, url: str, language: str) -> MailText:
    """To the merchant, who has asked for it: a link that logs in."""
    gettext = catalog(language).gettext
    return MailText(
        language,
        gettext("Log in to your shop"),
        [
            gettext(
                "This link works once. Press the button on the device that you want to use."
            ),
            gettext(
                "It works for ten minutes. If you did not ask for it, you can ignore this mail."
            ),
        ],
        [(gettext("Shop"), seller)],
        (gettext("Log in"), url),
    )
