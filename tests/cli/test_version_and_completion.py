"""What the command line tells of itself: its versions, and to a shell its words."""

import platform
import sqlite3
from importlib import metadata

import pytest
from forge import forge
from programs import done, tool

from btcpay import __version__

PATH = {"PATH": "/usr/bin:/bin"}


def test_the_version_is_told_with_python_databases_and_platform():
    ended = forge().run(PATH, ["--version"])
    assert (ended.status, ended.errors) == (0, "")
    first, second = ended.output.splitlines()
    assert first == f"btcpay, version {__version__}"
    python, sqlite, driver, *system = second.split(", ")
    assert python == f"Python {platform.python_version()}"
    assert sqlite == f"SQLite {sqlite3.sqlite_version}"
    assert driver == f"psycopg {metadata.version('psycopg')}"
    assert ", ".join(system) == platform.platform()


def complete(shell, words, number):
    """What the shell is answered for the word of this number."""
    environ = PATH | {"_BTCPAY_COMPLETE": f"{shell}_complete", "COMP_WORDS": words}
    if shell == "fish":  # which names the word itself
        environ["COMP_CWORD"] = words.split(" ")[number]
    else:
        environ["COMP_CWORD"] = str(number)
    return forge().run(environ, []).output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_the_commands_their_words_and_a_script_for_either_name(shell):
    assert "invoice" in complete(shell, "btcpay inv", 1)
    assert "dismiss" in complete(shell, "btcpay invoice dis", 2)
    for name in ("btcpay", "blocktill"):  # its script
        ended = forge().run(PATH | {f"_{name.upper()}_COMPLETE": f"{shell}_source"}, [], name=name)
        assert (ended.status, ended.errors) == (0, "") and f"{shell}_complete" in ended.output


def test_bash_completes_with_the_script_as_the_documentation_says(tmp_path):
    """A bash of its own evaluates the line and calls what it has set up for the command."""
    program = tmp_path / "btcpay"
    program.write_text(f'#!/bin/sh\nexec {tool("btcpay")} "$@"\n')
    program.chmod(0o755)
    script = """
eval "$(_BTCPAY_COMPLETE=bash_source btcpay)"
COMP_WORDS=(btcpay key iss) COMP_CWORD=2
$(complete -p btcpay | sed -E 's/.* -F ([^ ]+) .*/\\1/') btcpay iss key
echo "${COMPREPLY[@]}"
"""
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert done(["bash", "-c", script], env=environ).strip() == "issue"
