"""Chooses the language of a page, and installs the translations in the templates.

The language is that of the query parameter `lang`, which links keep. Without `lang` it
is the best language of the header Accept-Language.
"""

import re
from urllib.parse import urlencode

from flask import g, request
from flask.sansio.app import App
from markupsafe import Markup, escape

from btcpay.languages import formats
from btcpay.languages.catalogs import DEFAULT, LANGUAGES, catalog

# Query parameters that a link to this page in another language leaves out: the present language,
# and the message about the last action.
_LEFT_OUT = ("lang", "done")
# Characters that change the direction of text (Unicode, UAX 9). A title cannot contain
# markup that would limit their effect.
_DIRECTION_MARKS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def install(app: App) -> None:
    """Installs gettext and two filters in the Jinja templates.

    In templates, `_` and `ngettext` translate a text and insert values into it. They
    escape a value unless it is Markup.
    """
    env = app.jinja_env
    env.trim_blocks = True
    env.lstrip_blocks = True
    env.add_extension("jinja2.ext.i18n")

    def translate(text: str) -> str:
        return catalog(current_language()).gettext(text)

    def translate_number(singular: str, plural: str, number: int) -> str:
        return catalog(current_language()).ngettext(singular, plural, number)

    env.install_gettext_callables(  # type: ignore[attr-defined]
        translate, translate_number, newstyle=True
    )
    env.filters["bitcoin"] = bitcoin
    env.filters["without_direction_marks"] = without_direction_marks


def gettext(text: str, **values: str) -> str:
    return catalog(current_language()).gettext(text) % values


def ngettext(singular: str, plural: str, number: int, **values: str) -> str:
    return catalog(current_language()).ngettext(singular, plural, number) % values


def current_language() -> str:
    """Returns the code of this request's language, one of LANGUAGES.

    `g.language` caches it.
    """
    if "language" not in g:
        accepted = request.accept_languages.best_match(LANGUAGES, DEFAULT)
        g.language = language_parameter().get("lang") or accepted or DEFAULT
    return str(g.language)


def language_query() -> str:
    """Returns the query string that keeps the language in a link, such as `?lang=de`.

    Returns "" if this request has no parameter `lang` with a known language.
    """
    language = language_parameter().get("lang")
    if language is None:
        return ""
    return f"?lang={language}"


def this_page_in(language: str) -> str:
    """Returns the query string that shows this page in another language.

    It keeps the page's other parameters.
    """
    parameters = [("lang", language)]
    for name, value in request.args.items(multi=True):
        if name not in _LEFT_OUT:
            parameters.append((name, value))
    return "?" + urlencode(parameters)


def language_parameter() -> dict[str, str]:
    """Returns {"lang": code} if the request's `?lang=` is a known language, else {}."""
    language = request.args.get("lang", "")
    if language in LANGUAGES:
        return {"lang": language}
    return {}


def bitcoin(amount_sats: int) -> Markup:
    """Returns the amount in BTC as HTML.

    The attribute `data-sats` has the amount in satoshis as text, so that the page's
    script can show satoshis instead of BTC.
    """
    language = current_language()
    number = formats.whole(amount_sats, language)
    satoshis = ngettext("one satoshi", "%(sats)s satoshis", amount_sats, sats=number)
    btc = formats.btc(amount_sats, language)
    # `Markup.format` would take longer than the rest of this function.
    return Markup(f'<bdi data-sats="{escape(satoshis)}">{btc} BTC</bdi>')


def without_direction_marks(text: str) -> str:
    """Returns the text on one line without direction marks, for a title or a preview.

    Direction marks are invisible characters that could change how the surrounding text
    is displayed.
    """
    return " ".join(_DIRECTION_MARKS.sub("", text).split())
