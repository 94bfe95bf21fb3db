"""Checks that a page fits its window, and axe-core's findings about it."""

from tests.support import bitcoin_node
from tests.support.browser import Tab, lack

# Elements that stand out of the window, to either side, but for those that only readers hear.
EDGES = """[...document.querySelectorAll('body *')]
    .filter((it) => it.checkVisibility() && !it.closest('.unseen, thead')
        && (it.getBoundingClientRect().right > innerWidth + 0.5
            || it.getBoundingClientRect().left < -0.5))
    .map((it) => it.outerHTML.slice(0, 80))"""
SIDEWAYS = (
    "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
)
AXE = """axe.run(document, {resultTypes: ['violations'], iframes: false%s}).then(({violations}) =>
    violations.map(({id, nodes}) => `${id}: ${nodes.map((node) => node.html).join(' ')}`))"""
ALL_RULES = AXE % ""
# A theme changes colours and nothing else.
RULES_OF_COLOURS = AXE % ", runOnly: ['color-contrast', 'link-in-text-block']"


def axe_script() -> str:
    """axe-core's script; the test skips where it is not installed."""
    if reason := bitcoin_node.why_not_installed():
        lack(reason)
    return (bitcoin_node.FOLDER / "node_modules/axe-core/axe.min.js").read_text(
        encoding="utf-8"
    )


def misfits(tab: Tab, width: int) -> list[str]:
    """Elements that stand out of the window, or the fact that the page can be moved sideways."""
    found: list[str] = tab.ask(EDGES)
    if tab.ask(f"[innerWidth, {SIDEWAYS}]") != [width, 0]:
        found.append("the page moves sideways")
    return found


def faults(tab: Tab, script: str, rules: str = ALL_RULES) -> list[str]:
    """What axe-core finds; its half megabyte of script is read once a page."""
    is_loaded = tab.ask("'axe' in window")
    found: list[str] = tab.ask(rules if is_loaded else f"{script}; {rules}")
    return found


def look(tab: Tab, script: str, sizes: tuple[tuple[int, int], ...]) -> list[str]:
    found: list[str] = []
    for theme, rules in (("light", ALL_RULES), ("dark", RULES_OF_COLOURS)):
        for size in sizes:
            tab.emulate(size, theme)
            found += misfits(tab, size[0])
        found += faults(tab, script, rules)
    return found
