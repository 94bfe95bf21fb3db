"""The languages of the pages, and how one is chosen: by `?lang=`, else by Accept-Language.

The choice is carried on in the query of the next page; no cookie remembers it.
"""

from pathlib import Path

from flask import request
from flask.sansio.app import App
from flask_babel import Babel, get_locale

LANGUAGES = {
    "en": "English",
    "es": "Español",
    "de": "Deutsch",
    "fr": "Français",
    "pt": "Português",
    "ja": "日本語",
}
DEFAULT = "en"  # the language of the message ids; it has no catalog
CATALOGS = Path(__file__).resolve().parent / "translations"


def install(app: App) -> None:
    """Gives the templates `_` and `ngettext`, from the catalogs beside this module."""
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    Babel(
        app,
        default_locale=DEFAULT,
        default_translation_directories=str(CATALOGS),
        locale_selector=_asked,
    )


def current() -> str:
    """The language of this request: one of LANGUAGES."""
    locale = get_locale()
    return locale.language if locale else DEFAULT


def carried() -> str:
    """The query that carries a choice on to the next page: `?lang=de`, or nothing."""
    return f"?lang={request.args['lang']}" if _picked() else ""


def _picked() -> str | None:
    asked = request.args.get("lang", "")
    return asked if asked in LANGUAGES else None


def _asked() -> str:
    return _picked() or request.accept_languages.best_match(LANGUAGES, DEFAULT) or DEFAULT
