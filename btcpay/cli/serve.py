"""`serve`: gunicorn with the project's configuration."""

import os
import sys
from pathlib import Path

import click

from btcpay.cli.context import Shell, with_shell

PROJECT = Path(__file__).resolve().parents[2]


@click.command()
@with_shell
def serve(shell: Shell) -> None:
    """Serve the interface and the pages; GUNICORN_CMD_ARGS is honoured too."""
    config = str(PROJECT / "gunicorn.conf.py")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")])
    )
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "-c", config, "wsgi:app"])
