"""The driver of PostgreSQL is not loaded by a shop on SQLite, where it would only take memory."""

import subprocess
import sys

import pytest

from btcpay.cli.main import COMMANDS
from tests.support.paths import PROJECT

FIRST = ["app", "btcpay.cli.main", "btcpay.web.gunicorn_conf"]
PROGRAM = """
import sys
from importlib import import_module
for module in sys.argv[1:]:
    import_module(module)
print("peewee" in sys.modules, "psycopg" in sys.modules)
import psycopg
print(psycopg.connect.__name__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", FIRST)
def test_no_program_loads_it_and_yet_it_can_be_imported(first):
    modules = [first, *sorted(set(COMMANDS.values()))]
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, *modules],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert answer.split() == ["True", "False", "connect"]
