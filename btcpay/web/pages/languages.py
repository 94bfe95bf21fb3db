"""The language of a page: `?lang=`, which links pass on, or that of Accept-Language."""

import re
from urllib.parse import urlencode

from flask import g, request
from flask.sansio.app import App
from markupsafe import Markup, escape

from btcpay.languages import formats
from btcpay.languages.catalogs import DEFAULT, LANGUAGES, catalog

# Parameters that a link to the same page in another language leaves out: its language, and the
# notice of what was just done.
_LEFT_OUT = ("lang", "done")
# Characters that change the direction of writing (Unicode, UAX 9): a title has no markup that
# would end it.
_DIRECTION_MARKS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def install(app: App) -> None:
    """Gives the templates `_` and `ngettext`, which escape values unless they are markup."""
    env = app.jinja_env
    env.trim_blocks = env.lstrip_blocks = True
    env.add_extension("jinja2.ext.i18n")
    env.install_gettext_callables(  # type: ignore[attr-defined]
        lambda text: catalog(current_language()).gettext(text),
        lambda one, more, number: catalog(current_language()).ngettext(
            one, more, number
        ),
        newstyle=True,
    )
    env.filters["bitcoin"] = bitcoin
    env.filters["without_direction_marks"] = without_direction_marks


def gettext(text: str, **values: str) -> str:
    return catalog(current_language()).gettext(text) % values


def ngettext(one: str, more: str, number: int, **values: str) -> str:
    return catalog(current_language()).ngettext(one, more, number) % values


def current_language() -> str:
    """The language of this request: one of LANGUAGES."""
    if "language" not in g:
        accepted = request.accept_languages.best_match(LANGUAGES, DEFAULT)
        g.language = language_parameter().get("lang") or accepted or DEFAULT
    return str(g.language)


def language_query() -> str:
    """The query that passes the chosen language on to the next page: `?lang=de`, or ""."""
    return "".join(f"?{name}={value}" for name, value in language_parameter().items())


def this_page_in(language: str) -> str:
    """The query that shows this page in another language; its other parameters stay."""
    parameters = [("lang", language)]
    for name, value in request.args.items(multi=True):
        if name not in _LEFT_OUT:
            parameters.append((name, value))
    return "?" + urlencode(parameters)


def language_parameter() -> dict[str, str]:
    """The language that was chosen by `lang`, as that parameter; empty if none was."""
    language = request.args.get("lang", "")
    if language in LANGUAGES:
        return {"lang": language}
    return {}


def bitcoin(amount_sats: int) -> Markup:
    """The amount in BTC; the script can replace it by the satoshis in `data-sats`."""
    language = current_language()
    number = formats.whole(amount_sats, language)
    satoshis = ngettext("one satoshi", "%(sats)s satoshis", amount_sats, sats=number)
    btc = formats.btc(amount_sats, language)
    # Not by `Markup.format`, which takes longer than all the rest.
    return Markup(f'<bdi data-sats="{escape(satoshis)}">{btc} BTC</bdi>')


def without_direction_marks(text: str) -> str:
    """One line, for a window's title or a preview, that cannot write over the text around it."""
    return " ".join(_DIRECTION_MARKS.sub("", text).split())
