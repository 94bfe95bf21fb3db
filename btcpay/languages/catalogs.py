"""The languages, and each one's texts, by the English texts, from its .po file."""

import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from btcpay.languages import formats

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
DEFAULT = "en"  # the language of the message ids; it has no file
FOLDER = Path(__file__).resolve().parent / "translations"
_LINE = re.compile(r'^(?:(msg\S+) )?(".*")$', re.M)


class Catalog(NamedTuple):
    """The texts of one language; plural forms in the order of CLDR: zero, one, two, few."""

    language: str
    forms: dict[str, list[str]]

    def gettext(self, text: str) -> str:
        return self.forms.get(text, [text])[0]

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        forms = self.forms.get(singular, [singular, plural])
        place = formats.plural_form(number, self.language)
        last_place = len(forms) - 1
        return forms[min(place, last_place)]


@cache
def catalog(language: str) -> Catalog:
    """The texts of one of LANGUAGES; reading a file takes some 3 ms, once in a process."""
    if language == DEFAULT:
        return Catalog(language, {})
    po = (FOLDER / f"{language}.po").read_text(encoding="utf-8")
    return Catalog(language, _parse(po))


def _parse(po: str) -> dict[str, list[str]]:
    """The forms of each text: entries with blank lines between, as Babel and Poedit write them."""
    forms = {}
    for entry in po.split("\n\n"):
        texts = _texts_of(entry)
        msgid = texts.get("msgid")
        if msgid:
            forms[msgid] = [
                text for keyword, text in texts.items() if keyword.startswith("msgstr")
            ]
    return forms


def _texts_of(entry: str) -> dict[str, str]:
    """The texts of an entry by their keywords; a text may go on over several lines."""
    texts: dict[str, str] = {}
    keyword = ""
    for named, quoted in _LINE.findall(entry):
        keyword = named or keyword
        texts[keyword] = texts.get(keyword, "") + json.loads(quoted)
    return texts
