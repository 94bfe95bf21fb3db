"""The blocks of commands in docs/operators/going-live.md, and how each of them is tried."""

import re

from tests.support.paths import PROJECT

TEXT = (PROJECT / "docs/operators/going-live.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"<!-- (?P<how>run|by hand): (?P<name>[^;\n]+?) -->\n"
    r"```console\n(?P<lines>.*?)```\n",
    re.S,
)
BLOCKS = [match.groupdict() for match in BLOCK.finditer(TEXT)]
RUN = {block["name"]: block for block in BLOCKS if block["how"] == "run"}


def commands(name: str) -> list[str]:
    """The commands of a block, without the prompt; a line that goes on stays one command."""
    lines = RUN[name]["lines"]
    return [line[2:] for line in re.findall(r"^\$ (?:.*\\\n)*.*$", lines, re.M)]
