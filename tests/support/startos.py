"""The package of deploy/startos, read by the tools of StartOS's own kit, which npm has."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support.paths import PROJECT, TESTS
from tests.support.programs import done, tool

PACKAGE = PROJECT / "deploy/startos"
KIT = TESTS / "nightly/lints/startos"
# Compiles one file that imports nothing, and prints what an expression of its exports is.
RUN = """
const [path, expression] = process.argv.slice(1)
const ts = require('typescript')
const options = { compilerOptions: { module: ts.ModuleKind.CommonJS } }
const text = require('fs').readFileSync(path, 'utf8')
const exported = {}
new Function('exports', ts.transpileModule(text, options).outputText)(exported)
console.log(JSON.stringify(new Function('of', `return ${expression}`)(exported)))
"""


def copy(folder: Path) -> Path:
    """Returns the package in the folder, with the kit beside it."""
    package = folder / "startos"
    shutil.copytree(PACKAGE, package)
    (package / "node_modules").symlink_to(KIT / "node_modules")
    return package


def ask(expression: str) -> Any:
    """Returns the value of an expression of environment.ts, whose exports are `of`."""
    path = PACKAGE / "startos/environment.ts"
    said = done([tool("node"), "-e", RUN, path, expression], cwd=KIT)
    return json.loads(said)


def environment(address: str, password: str, node: str) -> dict[str, str]:
    """Returns the settings that the package gives to the shop."""
    words = ", ".join(map(json.dumps, (address, password, node)))
    return dict(ask(f"of.environment({words})"))
