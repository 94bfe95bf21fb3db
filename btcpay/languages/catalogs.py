"""Lists the languages, and loads the translations of each from its .po file."""

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
DEFAULT = "en"  # the language of the message ids, so it has no .po file
FOLDER = Path(__file__).resolve().parent / "translations"
_LINE = re.compile(r'^(?:(msg\S+) )?(".*")$', re.M)


class Catalog(NamedTuple):
    """The translations of one language, by the English text.

    `forms` has the translations of each English text: one for each plural form of the
    language, in CLDR's order (zero, one, two, few, many, other). A text without a
    plural has one translation.
    """

    language: str
    forms: dict[str, list[str]]

    def gettext(self, text: str) -> str:
        return self.forms.get(text, [text])[0]

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        forms = self.forms.get(singular, [singular, plural])
        index = formats.plural_form(number, self.language)
        last_index = len(forms) - 1
        return forms[min(index, last_index)]


@cache
def catalog(language: str) -> Catalog:
    """Returns the translations of one of LANGUAGES.

    A process loads the file of each language only once, which takes about 3 ms.
    """
    if language == DEFAULT:
        return Catalog(language, {})
    po = (FOLDER / f"{language}.po").read_text(encoding="utf-8")
    return Catalog(language, _parse(po))


def _parse(po: str) -> dict[str, list[str]]:
    """Returns the translations in a .po file, by the English text.

    Blank lines separate the entries, as Babel and Poedit write them.
    """
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
    """Returns the texts of an entry by keyword; a text may span several lines."""
    texts: dict[str, str] = {}
    keyword = ""
    for new_keyword, quoted_text in _LINE.findall(entry):
        # a line without a keyword continues the text before it
        keyword = new_keyword or keyword
        texts[keyword] = texts.get(keyword, "") + json.loads(quoted_text)
    return texts
