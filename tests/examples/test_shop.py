"""`examples/shop/` in three languages: the tests of each, by the commands of its README."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.builders import clean_environ
from tests.support.paths import GONE, PROJECT
from tests.support.programs import tool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("sandbox_command" in GONE, reason="the part was deleted"),
]

README = (PROJECT / "examples/shop/README.md").read_text(encoding="utf-8")
LINES = re.findall(r"^blocktill sandbox --once -- .+$", README, re.M)
SHOPS = [*(PROJECT / "examples/shop").glob("*/shop.*")]


def language(line):
    return shlex.split(line)[4]


def test_each_shop_has_a_command_that_tests_it():
    tested = {PROJECT / shlex.split(line)[5] for line in LINES}
    assert {path.parent for path in tested} == {path.parent for path in SHOPS}
    assert len(SHOPS) == 3


@pytest.mark.parametrize("line", LINES, ids=language)
def test_the_shops_own_tests_are_green(line, tmp_path):
    tool(language(line))
    programs = Path(sys.executable).parent
    ended = subprocess.run(
        shlex.split(line),
        cwd=PROJECT,
        env=clean_environ(
            PATH=f"{programs}:{os.environ['PATH']}", TMPDIR=str(tmp_path)
        ),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [*tmp_path.iterdir()] == []
