"""A command loads what it needs: a check runs every minute, on small boards too."""

import subprocess
import sys

import pytest
from paths import PROJECT

from btcpay.cli.main import COMMANDS

SERVING = {"flask", "werkzeug", "jinja2", "limits", "redis", "prometheus_client", "gunicorn"}
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
    """What the interpreter of the command line has in memory before the command begins."""
    code = f"import sys, {COMMANDS[command]}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) & NOT_NEEDED[command] == set()
