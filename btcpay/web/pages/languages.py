"""The language of a page: from `?lang=`, which links carry on, else from Accept-Language."""

import re
from urllib.parse import urlencode

from flask import g, request
from flask.sansio.app import App
from markupsafe import Markup, escape

from btcpay.languages import formats
from btcpay.languages.catalogs import DEFAULT, LANGUAGES, catalog

# Characters that turn the direction of writing (Unicode, UAX 9): a title has no markup to end it.
_SAID = ("lang", "done")  # of pages: the language, and the deed just done
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


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
    env.filters |= {
        "bitcoin": bitcoin,
        "without_direction_marks": without_direction_marks,
    }


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
    """The query that carries a choice on to the next page: `?lang=de`, or nothing."""
    return "".join(f"?{name}={value}" for name, value in language_parameter().items())


def this_page_in(language: str) -> str:
    """The query that shows this page in another language; its other parameters stay."""
    asked = request.args.items(multi=True)
    return "?" + urlencode(
        [("lang", language), *(it for it in asked if it[0] not in _SAID)]
    )


def language_parameter() -> dict[str, str]:
    """The choice as a parameter: `lang`, or nothing."""
    asked = request.args.get("lang", "")
    if asked in LANGUAGES:
        return {"lang": asked}
    return {}


def bitcoin(amount_sats: int) -> Markup:
    """The amount in BTC, with that in satoshis for the script to show in its place."""
    language = current_language()
    number = formats.whole(amount_sats, language)
    satoshis = ngettext("one satoshi", "%(sats)s satoshis", amount_sats, sats=number)
    # Not by `Markup.format`, which takes longer than all the rest.
    return Markup(
        f'<bdi data-sats="{escape(satoshis)}">{formats.btc(amount_sats, language)} BTC</bdi>'
    )


def without_direction_marks(text: str) -> str:
    """One line that cannot write over the text around it, for a window's title or a preview."""
    return " ".join(_TURNS.sub("", text).split())
