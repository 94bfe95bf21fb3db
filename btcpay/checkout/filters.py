"""Template filters for values of rows: amounts in bitcoin, texts where no markup can be."""

import re

from markupsafe import Markup, escape

from btcpay.languages import formats
from btcpay.web.pages import languages

# Characters that turn the direction of writing (Unicode, UAX 9): a title has no markup to end it.
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def bitcoin(amount_sats: int) -> Markup:
    """The amount in BTC, with that in satoshis for the script to show in its place."""
    language = languages.current()
    number = formats.whole(amount_sats, language)
    satoshis = languages.ngettext("one satoshi", "%(sats)s satoshis", amount_sats, sats=number)
    # Not by `Markup.format`, which takes longer than all the rest.
    return Markup(
        f'<bdi data-sats="{escape(satoshis)}">{formats.btc(amount_sats, language)} BTC</bdi>'
    )


def without_turns(text: str) -> str:
    """One line that cannot write over the text around it: for a window's title, a preview."""
    return " ".join(_TURNS.sub("", text).split())
