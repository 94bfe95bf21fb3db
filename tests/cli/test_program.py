"""The command line itself: versions, completion, what a command loads, and signals."""

import platform
import signal
import sqlite3
import subprocess
import sys

import pytest

from btcpay import __version__
from btcpay.cli.main import COMMANDS
from btcpay.cli.stop import Stop
from tests.support.forge import forge
from tests.support.paths import PROJECT
from tests.support.programs import done, tool

PATH = {"PATH": "/usr/bin:/bin"}


def test_the_version_is_told_with_those_of_python_and_sqlite():
    ended = forge().run(PATH, ["--version"])
    python = platform.python_version()
    sqlite = sqlite3.sqlite_version
    said = f"blocktill, version {__version__}\nPython {python}, SQLite {sqlite}\n"
    assert (ended.status, ended.errors, ended.output) == (0, "", said)


def test_bash_completes_with_the_script_as_the_documentation_says(tmp_path):
    """A bash of its own evaluates the line and calls what it has set up for the command."""
    program = tmp_path / "blocktill"
    program.write_text(f'#!/bin/sh\nexec {tool("blocktill")} "$@"\n')
    program.chmod(0o755)
    script = """
eval "$(_BLOCKTILL_COMPLETE=bash_source blocktill)"
COMP_WORDS=(blocktill key iss) COMP_CWORD=2
$(complete -p blocktill | sed -E 's/.* -F ([^ ]+) .*/\\1/') blocktill iss key
echo "${COMPREPLY[@]}"
"""
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert done(["bash", "-c", script], env=environ).strip() == "issue"


SERVING = {
    "flask",
    "werkzeug",
    "jinja2",
    "limits",
    "redis",
    "prometheus_client",
    "gunicorn",
}
# The network, and marshmallow for what explorers answer.
CALLING = {"requests", "urllib3", "http.client", "marshmallow"}
OTHERS = {"apispec", "segno", "btcpay.sandbox", "btcpay.health.doctor", "btcpay.backup"}


NOT_NEEDED = {
    "check": SERVING | OTHERS,
    "key": SERVING | OTHERS | CALLING,
    "serve": SERVING | CALLING,  # what serves starts as another program
}


@pytest.mark.parametrize("command", NOT_NEEDED)
def test_a_command_loads_only_what_it_needs(command):
    """Looks at the modules in memory after the import, before the command begins."""
    code = f"import sys, {COMMANDS[command]}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) & NOT_NEEDED[command] == set()


@pytest.fixture
def every():
    before = signal.getsignal(signal.SIGALRM)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_never_waits_for_the_thread_that_it_interrupts(every):
    stop = Stop(signal.SIGALRM)
    assert not stop.wait()
    every(0.0001)
    while not stop.wait(0.00001):
        pass
    assert all(stop.wait(30) for _ in range(2000))


def test_what_is_set_often_is_set():
    stop = Stop()
    for _ in range(100_000):
        stop.set()
    assert stop.wait(30)
