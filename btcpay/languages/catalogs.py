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

    def ngettext(self, one: str, more: str, number: int) -> str:
        forms = self.forms.get(one, [one, more])
        return forms[min(formats.plural(number, self.language), len(forms) - 1)]


@cache
def catalog(language: str) -> Catalog:
    """The texts of one of LANGUAGES; reading a file takes some 3 ms, once in a process."""
    if language == DEFAULT:
        return Catalog(language, {})
    return Catalog(
        language, _read((FOLDER / f"{language}.po").read_text(encoding="utf-8"))
    )


def _read(po: str) -> dict[str, list[str]]:
    """The forms of each text: entries with blank lines between, as Babel and Poedit write them."""
    found = {}
    for entry in po.split("\n\n"):
        texts: dict[str, str] = {}
        keyword = ""
        for named, quoted in _LINE.findall(
            entry
        ):  # a text may go on over several lines
            keyword = named or keyword
            texts[keyword] = texts.get(keyword, "") + json.loads(quoted)
        if texts.get("msgid"):
            found[texts["msgid"]] = [
                texts[name] for name in texts if name.startswith("msgstr")
            ]
    return found
