"""The languages, and the catalog of each: texts by their English ones."""

from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path

LANGUAGES = {
    "en": "English",
    "es": "Español",
    "de": "Deutsch",
    "fr": "Français",
    "pt": "Português",
    "ja": "日本語",
    "ar": "العربية",
    "fa": "فارسی",
}
DEFAULT = "en"  # the language of the message ids; it has no catalog
CATALOGS = Path(__file__).resolve().parent / "translations"


@cache
def catalog(language: str) -> NullTranslations:
    """The texts of one of LANGUAGES."""
    return translation("messages", CATALOGS, [language], fallback=language == DEFAULT)
