"""The languages of the pages, and how one is chosen: by `?lang=`, else by Accept-Language.

The choice is carried on in the query of the next page; no cookie remembers it.
"""

from functools import cache
from typing import Any

from flask import g, request
from flask.sansio.app import App
from markupsafe import Markup

from btcpay.languages.catalogs import DEFAULT, LANGUAGES, catalog


def install(app: App) -> None:
    """Gives the templates `_` and `ngettext`, from the catalogs."""
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals |= {"_": _text, "ngettext": _counted}


def _text(text: str, **values: Any) -> Markup:
    """The text in the language of this request; its values are escaped, unless they are markup."""
    return _markup(current(), text) % values if values else _plain(current(), text)


def _counted(one: str, more: str, num: int, **values: Any) -> Markup:
    """One of two texts, by a number that may stand in it as `num`."""
    return Markup(catalog(current()).ngettext(one, more, num)) % {"num": num, **values}


# Of texts that stand in templates, so that there are only so many.
@cache
def _markup(language: str, text: str) -> Markup:
    return Markup(catalog(language).gettext(text))


@cache
def _plain(language: str, text: str) -> Markup:
    return _markup(language, text) % {}


def gettext(text: str, **values: str) -> str:
    """The text in the language of this request, with its values."""
    return catalog(current()).gettext(text) % values


def ngettext(one: str, more: str, number: int, **values: str) -> str:
    """One of both texts, or of as many as the language has, by the number; with its values."""
    return catalog(current()).ngettext(one, more, number) % values


def current() -> str:
    """The language of this request: one of LANGUAGES."""
    noted = g._get_current_object()  # each use of `g` is a search
    if (known := noted.get("language")) is None:
        accepted = request.accept_languages.best_match(LANGUAGES, DEFAULT)
        known = noted.language = picked().get("lang") or accepted or DEFAULT
    return known


def carried() -> str:
    """The query that carries a choice on to the next page: `?lang=de`, or nothing."""
    return "".join(f"?{name}={value}" for name, value in picked().items())


def picked() -> dict[str, str]:
    """The choice as a parameter: `lang`, or nothing."""
    asked = request.args.get("lang", "")
    return {"lang": asked} if asked in LANGUAGES else {}
