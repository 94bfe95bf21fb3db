"""Asks about an e-mail address to which no mail can be sent, such as owner@example."""

from collections.abc import Mapping

from btcpay.values.hosts import is_without_mail
from btcpay.web.pages.languages import gettext

SURE = "sure"  # the hidden field with the text that was questioned before


def doubt(form: Mapping[str, str], field: str, address: str) -> str:
    """Returns a question about an address to which no mail can be sent.

    `address` is the address in the form's field `field`. Returns "" if mail can be sent
    to it, or if it is empty. The merchant may confirm a doubtful address by sending the
    form once more with the same text; then the result is "" too.
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
