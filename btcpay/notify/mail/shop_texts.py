"""Makes the texts of mails to a merchant that are not about a single invoice."""

from collections.abc import Sequence
from datetime import date, tzinfo
from typing import NamedTuple

from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail.content import MailText
from btcpay.values.money import Money


def overdue(
    since_ms: int,
    zone: tzinfo,
    pages_url: str | None,
    language: str,
) -> MailText:
    """Returns the mail that tells a merchant that payments are not being found.

    `since_ms` is the time of the last complete check (`blocktill check`) in Unix
    milliseconds. `pages_url` is the URL of the merchant's pages; None if they are off.
    Then the mail names a command instead.
    """
    gettext = catalog(language).gettext
    since = gettext("No check of the blockchain has completed since %(time)s.")
    sentences = [
        since % {"time": formats.moment(since_ms, language, zone)},
        gettext(
            "Until one does, no invoice is marked as paid. No payment is lost: it is in your"
            " wallet, and the next complete check will find it."
        ),
    ]
    if pages_url is None:
        advice = gettext("For details, run %(command)s on the server.")
        sentences.append(advice % {"command": "blocktill doctor"})
    title = gettext("Payments are not being found")
    return MailText(language, title, sentences, link=_shop_link(pages_url, language))


def _shop_link(pages_url: str | None, language: str) -> tuple[str, str] | None:
    """Returns the button that opens the merchant's pages; None if they are off."""
    if pages_url is None:
        return None
    return catalog(language).gettext("Open your shop"), pages_url


class Day(NamedTuple):
    """A day's sales: a sum for each currency, and the number of payments."""

    day: date
    sums: Sequence[Money]
    payments: int


def evening(
    day: Day,
    before: Day | None,
    is_today: bool,
    attention_count: int,
    is_checked: bool,
    pages_url: str | None,
    language: str,
) -> MailText:
    """Returns the evening mail to a merchant, with the day's sales and a warning if needed.

    - `before`: the previous day; None on the shop's first day. The mail shows the sales of
      that whole day too, since some may have come after that day's own mail was sent.
    - `is_today`: True if `day` is today.
    - `attention_count`: the number of invoices that need attention.
    - `is_checked`: False if payments are not being found, because no check
      (`blocktill check`) completes.
    - `pages_url`: the URL of the merchant's pages; None if they are off.
    """
    words = catalog(language)
    day_name = formats.day(day.day, language)
    if is_today:
        day_name = words.gettext("Today")
    amount, payments = _sales(day, language)
    values = {
        "day": day_name,
        "amount": amount,
        "payments": payments,
        "needs": _needs(attention_count, is_checked, language),
    }
    subject = words.gettext("%(day)s: %(amount)s in %(payments)s; %(needs)s") % values
    # The mail itself has the amount above the sentence, in large type.
    sentence = words.gettext("%(day)s: %(payments)s; %(needs)s") % values
    facts = []
    if before:
        sales_before = " · ".join(_sales(before, language))
        facts.append((formats.day(before.day, language), sales_before))
    return MailText(
        language,
        subject,
        sentences=[sentence],
        facts=facts,
        link=_shop_link(pages_url, language),
        amount=amount,
    )


def _needs(attention_count: int, is_checked: bool, language: str) -> str:
    """Returns what needs the merchant's attention, as a part of a sentence."""
    words = catalog(language)
    if not is_checked:
        return words.gettext("payments are not being found")
    if not attention_count:
        return words.gettext("nothing needs your attention")
    needs = words.ngettext(
        "%(number)s invoice needs your attention",
        "%(number)s invoices need your attention",
        attention_count,
    )
    return needs % {"number": formats.whole(attention_count, language)}


def _sales(day: Day, language: str) -> tuple[str, str]:
    """Returns the sums and the number of payments, as texts."""
    amount = " + ".join(formats.format_money(money, language) for money in day.sums)
    payments = catalog(language).ngettext(
        "%(number)s payment", "%(number)s payments", day.payments
    )
    return amount, payments % {"number": formats.whole(day.payments, language)}


def login(seller: str, url: str, language: str) -> MailText:
    """Returns the mail with the login link that a merchant has requested."""
    gettext = catalog(language).gettext
    return MailText(
        language,
        gettext("Log in to your shop"),
        sentences=[
            gettext(
                "This link works once. Press the button on the device that you want to use."
            ),
            gettext(
                "It works for ten minutes. If you did not ask for it, you can ignore this mail."
            ),
        ],
        facts=[(gettext("Shop"), seller)],
        link=(gettext("Log in"), url),
    )


def trial(seller: str, language: str) -> MailText:
    """Returns the test mail, which shows that the mail server works."""
    gettext = catalog(language).gettext
    return MailText(
        language,
        gettext("A test mail from your shop"),
        sentences=[gettext("You can read this, so your shop can send mails.")],
        facts=[(gettext("Shop"), seller)],
    )
