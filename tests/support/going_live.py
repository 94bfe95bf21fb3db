"""The blocks of commands in docs/going-live.md, and how each of them is tried."""

import re

from paths import PROJECT

TEXT = (PROJECT / "docs" / "going-live.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"<!-- (?P<how>run|by hand): (?P<name>[^;\n]+?) -->\n"
    r"```console\n(?P<lines>.*?)```\n",
    re.S,
)
BLOCKS = [match.groupdict() for match in BLOCK.finditer(TEXT)]
RUN = {block["name"]: block for block in BLOCKS if block["how"] == "run"}
