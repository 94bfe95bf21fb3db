"""Facts about the project, from pyproject.toml and deploy/Dockerfile."""

import re
import tomllib

from tests.support.paths import PROJECT

METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
VERSION = "Programming Language :: Python :: "
# Oldest first: 3.11 and those after it.
PYTHONS = [
    c.removeprefix(VERSION)
    for c in METADATA["classifiers"]
    if re.search(r":: 3\.\d", c)
]


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile: names, and what follows."""
    text = re.sub(
        r"^#.*\n", "", (PROJECT / "deploy" / "Dockerfile").read_text(), flags=re.M
    )
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]  # type: ignore[misc]


def copied() -> list[tuple[list[str], str]]:
    """The files copied from the project, and their destinations."""
    words = [argument.split() for name, argument in instructions() if name == "COPY"]
    return [(line[:-1], line[-1]) for line in words if not line[0].startswith("--from")]
