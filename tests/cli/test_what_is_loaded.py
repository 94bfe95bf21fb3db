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


@pytest.mark.parametrize(
    ("command", "not_needed"),
    [
        pytest.param("check", SERVING | OTHERS, id="a check serves nobody"),
        pytest.param("key", SERVING | OTHERS | CALLING, id="a key is a row and a hash"),
        pytest.param("serve", SERVING | CALLING, id="what serves starts as another program"),
    ],
)
def test_a_command_loads_only_what_it_needs(command, not_needed):
    """What the interpreter of the command line has in memory before the command begins."""
    code = f"import sys, {COMMANDS[command]}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) & not_needed == set()
