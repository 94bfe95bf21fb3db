"""The fonts of the tests' browser: the same on each machine, whatever else it has.

Tests use Debian's usual font, which is wide: what has room in it has room in others. Pictures
are taken in those of Android phones, with BROWSER_FONTS.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from tests.support.browser import Tab

USUAL = "DejaVu Sans"
PHONE = "Roboto"
GENERIC = ("system-ui", "sans-serif")
FILE = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include>
{rules}
</fontconfig>
"""
RULE = """<match target="pattern">
<test name="family"><string>{generic}</string></test>
<edit name="family" mode="prepend" binding="strong">{families}</edit>
</match>"""


def fonts_file(folder: Path) -> Path:
    """The file for FONTCONFIG_FILE; BROWSER_FONTS has the families, with commas between."""
    names = os.environ.get("BROWSER_FONTS", USUAL).split(",")
    families = "".join(f"<string>{escape(name.strip())}</string>" for name in names)
    rules = [RULE.format(generic=generic, families=families) for generic in GENERIC]
    file = folder / "fonts.conf"
    file.write_text(FILE.format(rules="\n".join(rules)), encoding="utf-8")
    return file


def fonts_on(tab: "Tab") -> set[str]:
    """The families that the page's text is drawn in."""
    tab.call("DOM.enable")
    tab.call("CSS.enable")
    root = tab.call("DOM.getDocument")["root"]["nodeId"]
    body = tab.call("DOM.querySelector", nodeId=root, selector="#main")["nodeId"]
    fonts = tab.call("CSS.getPlatformFontsForNode", nodeId=body)["fonts"]
    return {font["familyName"] for font in fonts}
