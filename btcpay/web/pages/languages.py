"""The language of a page: by `?lang=`, which the next page gets too, else by Accept-Language."""

from flask import g, request
from flask.sansio.app import App

from btcpay.languages.catalogs import DEFAULT, LANGUAGES, catalog


def install(app: App) -> None:
    """Gives the templates `_` and `ngettext`, which escape values unless they are markup."""
    env = app.jinja_env
    env.trim_blocks = env.lstrip_blocks = True
    env.add_extension("jinja2.ext.i18n")
    env.install_gettext_callables(  # type: ignore[attr-defined]
        lambda text: catalog(current()).gettext(text),
        lambda one, more, number: catalog(current()).ngettext(one, more, number),
        newstyle=True,
    )


def gettext(text: str, **values: str) -> str:
    """The text in the language of this request, with its values."""
    return catalog(current()).gettext(text) % values


def ngettext(one: str, more: str, number: int, **values: str) -> str:
    """The form that goes with the number, with its values."""
    return catalog(current()).ngettext(one, more, number) % values


def current() -> str:
    """The language of this request: one of LANGUAGES."""
    if "language" not in g:
        accepted = request.accept_languages.best_match(LANGUAGES, DEFAULT)
        g.language = picked().get("lang") or accepted or DEFAULT
    return str(g.language)


def carried() -> str:
    """The query that carries a choice on to the next page: `?lang=de`, or nothing."""
    return "".join(f"?{name}={value}" for name, value in picked().items())


def picked() -> dict[str, str]:
    """The choice as a parameter: `lang`, or nothing."""
    asked = request.args.get("lang", "")
    return {"lang": asked} if asked in LANGUAGES else {}
