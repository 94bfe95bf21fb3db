"""Asks about an e-mail address to which no mail can be sent, such as owner@example."""

from collections.abc import Mapping

from btcpay.values.hosts import is_without_mail
from btcpay.web.pages.languages import gettext

SURE = "sure"  # the hidden field with the text that was questioned before


def doubt(form: Mapping[str, str], field: str, address: str) -> str:
    """Returns the question about the address in the form's field; "" if there is none.

    If the form has the same text that was questioned before, there is no question: the
    merchant confirms the text by sending the form once more.
    """
    if not address or form.get(SURE) == form.get(field):
        return ""
    domain = address.rpartition("@")[2]
    if not is_without_mail(domain):
        return ""
    return gettext(
        "%(domain)s receives no mail. Correct the address, or save once more to use it"
        " all the same.",
        domain=domain,
    )
