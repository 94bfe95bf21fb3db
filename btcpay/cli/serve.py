"""`serve`: gunicorn with the project's configuration."""

import os
import sys
from pathlib import Path

import click

from btcpay.cli.context import Shell, with_shell

PROJECT = Path(__file__).resolve().parents[2]  # a checkout, or the site-packages of a wheel
GUNICORN = ["-c", "python:btcpay.web.gunicorn_conf", "wsgi:app"]


@click.command()
@with_shell
def serve(shell: Shell) -> None:
    """Serve the interface and the pages; GUNICORN_CMD_ARGS is honoured too."""
    # Unless it is on the path gunicorn puts this folder first, whose `app.py` may be another's.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(PROJECT), os.environ.get("PYTHONPATH"), os.getcwd()])
    )
    os.execv(sys.executable, [sys.executable, "-P", "-m", "gunicorn", *GUNICORN])
