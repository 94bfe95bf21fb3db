"""Chooses a page's language: `?lang=`, which links keep, else Accept-Language."""

import re
from urllib.parse import urlencode

from flask import g, request
from flask.sansio.app import App
from markupsafe import Markup, escape

from btcpay.languages import formats
from btcpay.languages.catalogs import DEFAULT, LANGUAGES, catalog

# Parameters that a link to this page in another language drops: its language, and the
# message about the last action.
_LEFT_OUT = ("lang", "done")
# Characters that change the direction of text (Unicode, UAX 9). A title cannot contain
# markup that would limit their effect.
_DIRECTION_MARKS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def install(app: App) -> None:
    """Installs gettext and two filters in Jinja.

    `_` and `ngettext` escape their values, unless these are Markup.
    """
    env = app.jinja_env
    env.trim_blocks = env.lstrip_blocks = True
    env.add_extension("jinja2.ext.i18n")
    env.install_gettext_callables(  # type: ignore[attr-defined]
        lambda text: catalog(current_language()).gettext(text),
        lambda singular, plural, number: catalog(current_language()).ngettext(
            singular, plural, number
        ),
        newstyle=True,
    )
    env.filters["bitcoin"] = bitcoin
    env.filters["without_direction_marks"] = without_direction_marks


def gettext(text: str, **values: str) -> str:
    return catalog(current_language()).gettext(text) % values


def ngettext(singular: str, plural: str, number: int, **values: str) -> str:
    return catalog(current_language()).ngettext(singular, plural, number) % values


def current_language() -> str:
    """Returns the language of this request, one of LANGUAGES."""
    if "language" not in g:
        accepted = request.accept_languages.best_match(LANGUAGES, DEFAULT)
        g.language = language_parameter().get("lang") or accepted or DEFAULT
    return str(g.language)


def language_query() -> str:
    """Returns the query that keeps the chosen language, such as `?lang=de`, or ""."""
    return "".join(f"?{name}={value}" for name, value in language_parameter().items())


def this_page_in(language: str) -> str:
    """Returns the query string of this page in another language, with its other parameters."""
    parameters = [("lang", language)]
    for name, value in request.args.items(multi=True):
        if name not in _LEFT_OUT:
            parameters.append((name, value))
    return "?" + urlencode(parameters)


def language_parameter() -> dict[str, str]:
    """Returns {"lang": code} if the request names a known language, else {}."""
    language = request.args.get("lang", "")
    if language in LANGUAGES:
        return {"lang": language}
    return {}


def bitcoin(amount_sats: int) -> Markup:
    """Returns the amount in BTC as HTML.

    The attribute `data-sats` has the amount in satoshis as text. The page's script can
    show it instead.
    """
    language = current_language()
    number = formats.whole(amount_sats, language)
    satoshis = ngettext("one satoshi", "%(sats)s satoshis", amount_sats, sats=number)
    btc = formats.btc(amount_sats, language)
    # `Markup.format` would take longer than the rest of this function.
    return Markup(f'<bdi data-sats="{escape(satoshis)}">{btc} BTC</bdi>')


def without_direction_marks(text: str) -> str:
    """Returns the text as one line without direction marks, for a title or a preview.

    Direction marks could change how the text around it is displayed.
    """
    return " ".join(_DIRECTION_MARKS.sub("", text).split())
