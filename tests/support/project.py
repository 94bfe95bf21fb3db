"""Facts about the project, from pyproject.toml."""

import re
import tomllib

from paths import PROJECT

METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
VERSION = "Programming Language :: Python :: "
# Oldest first: 3.11 and those after it.
PYTHONS = [c.removeprefix(VERSION) for c in METADATA["classifiers"] if re.search(r":: 3\.\d", c)]
