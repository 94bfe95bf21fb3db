"""Command `serve`: replaces itself with gunicorn, which serves the web application."""

import os
import sys
from pathlib import Path

import click

from btcpay.cli.output import say
from btcpay.cli.shell import Shell, with_shell
from btcpay.merchants.first_run import start_url
from btcpay.merchants.owner_password import owner_password
from btcpay.merchants.sessions import end_sessions_of_other_passwords
from btcpay.settings.secrets import HIDDEN

# The root of the checkout, or site-packages if a wheel is installed.
PROJECT = Path(__file__).resolve().parents[2]
GUNICORN = ["-c", "python:btcpay.web.gunicorn_conf", "wsgi:app"]


@click.command()
@with_shell
def serve(shell: Shell) -> None:
    """Serve the API and the pages with gunicorn; GUNICORN_CMD_ARGS sets its options.

    If there is no merchant yet and the merchant's pages are on, prints the URL of the page that
    makes one.
    """
    prepare_service(shell)
    # gunicorn would put the current folder first, which may hold another `app.py`: it comes last.
    path = [str(PROJECT), os.environ.get("PYTHONPATH"), os.getcwd()]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    os.execv(sys.executable, [sys.executable, "-P", "-m", "gunicorn", *GUNICORN])


def prepare_service(shell: Shell) -> None:
    """Prepares the start of the service.

    Ends sessions that were opened with a former password of the owner. If there is no
    merchant yet, prints the URL of the page that creates one.
    """
    password = owner_password(shell.settings.owner_password, shell.db)
    end_sessions_of_other_passwords(shell.db, password.scrypt)
    if shell.settings.merchant_pages:
        _show_start(shell)


def _show_start(shell: Shell) -> None:
    """Prints the URL of the page that creates the first merchant, if there is none yet.

    If the owner's password is set, that page asks for the password. Setup links that were
    printed before stop working.
    """
    base_url = shell.settings.base_url
    if shell.settings.owner_password:
        # Nobody learns the new link, so no setup link works.
        if start_url(shell.db, base_url):
            say(f"To begin, open {base_url}/merchant, with BLOCKTILL_OWNER_PASSWORD")
        return
    token = shell.settings.setup_token
    url = start_url(shell.db, base_url, token)
    if not url:
        return
    if token:  # hides the token, since the output may go to a log
        url = f"{url.removesuffix(token)}{HIDDEN} ({HIDDEN}: BLOCKTILL_SETUP_TOKEN)"
    say(f"To begin, open {url}")
