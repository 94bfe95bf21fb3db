"""A browser's name from its User-Agent: enough to tell one's own devices apart."""

import re
from typing import NamedTuple

MOST_SHOWN = 60  # characters of a text that no rule knows

# The first that fits: nearly every browser also claims to be Chrome, Safari or both.
_BROWSERS = (
    ("Edge", re.compile(r"\bEdg(e|A|iOS)?/")),
    ("Opera", re.compile(r"\b(OPR|OPT|Opera)/")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/")),
    ("Vivaldi", re.compile(r"\bVivaldi/")),
    ("Firefox", re.compile(r"\b(Firefox|FxiOS)/")),
    ("Chrome", re.compile(r"\b(Chrome|CriOS|Chromium|HeadlessChrome)/")),
    ("Safari", re.compile(r"\bVersion/[^ ]+ (Mobile/[^ ]+ )?Safari/")),
)
# An Android is a Linux, and an iPhone is "like Mac OS X".
_SYSTEMS = (
    ("Android", re.compile(r"\bAndroid\b")),
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Windows", re.compile(r"\bWindows\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("macOS", re.compile(r"\bMac OS X\b")),
    ("Linux", re.compile(r"\b(Linux|X11)\b")),
)


class BrowserName(NamedTuple):
    """Such as Firefox and Android; `system` may be empty, or both.

    A text that no rule knows is the browser itself, cut short.
    """

    browser: str
    system: str


def named(user_agent: str) -> BrowserName:
    """The name that a person would give to the browser."""
    browser, system = _first(_BROWSERS, user_agent), _first(_SYSTEMS, user_agent)
    text = " ".join(user_agent.split())
    cut = text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}\u2026"
    return BrowserName(browser, system) if browser else BrowserName(cut, "")


def _first(rules: tuple[tuple[str, re.Pattern[str]], ...], text: str) -> str:
    return next((name for name, rule in rules if rule.search(text)), "")
