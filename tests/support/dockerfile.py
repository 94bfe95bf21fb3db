"""The instructions of deploy/Dockerfile."""

import re

from paths import PROJECT


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (PROJECT / "deploy" / "Dockerfile").read_text(), flags=re.M)
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]  # type: ignore[misc]


def copied() -> list[tuple[list[str], str]]:
    """The files copied from the project, and their destinations."""
    words = [argument.split() for name, argument in instructions() if name == "COPY"]
    return [(line[:-1], line[-1]) for line in words if not line[0].startswith("--from")]
