"""The command `sandbox`: runs a regtest chain, the service and the check with a demo shop."""

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import requests

from btcpay import hooks
from btcpay.check.beginning import begin_chain
from btcpay.cli.children import Children
from btcpay.cli.merchant.access import play_money_key
from btcpay.cli.shell import Shell
from btcpay.cli.stop import Stop
from btcpay.merchants.sessions import login_url
from btcpay.parts.sandbox_command.config import SandboxConfig, command_line
from btcpay.parts.sandbox_command.demo import add_webhook, merchant_id, page_urls
from btcpay.parts.sandbox_command.once import (
    STOP_TIMEOUT_S,
    run_once,
    temporary_config,
)
from btcpay.settings.settings import read, read_or_exit
from btcpay.values.errors import CommandError, DatabaseNotReady
from btcpay.values.times import utc_now
from storage.database import Database, place_of
from storage.versions import migrate

PORT = 8001
STATE = Path("var/sandbox")
START_TIMEOUT_S = 60
TRIES_EVERY_S = 0.05


@click.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), help=f"The workbench's.  [default: {PORT}]"
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Where the chain, the demo keys and the log are kept.  [default: {STATE}]",
)
@click.option(
    "--once", is_flag=True, help="For tests: a new shop, gone when COMMAND has ended."
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def sandbox(
    port: int | None,
    state: Path | None,
    once: bool,
    words: tuple[str, ...],
) -> None:
    """Start a regtest playground: chain, price, service, and a check every two seconds.

    With --once it uses a temporary folder and free ports, and ends with COMMAND's exit status.
    COMMAND has BLOCKTILL_URL, BLOCKTILL_KEY and BLOCKTILL_SANDBOX_URL in its environment. Without
    a command these are printed as JSON; it runs until a signal, or until standard input, if a
    pipe, closes.

    `python -m btcpay.sandbox --port 8001 --state var/sandbox` starts only the chain, for
    `blocktill restore` while the service is stopped.
    """
    if words and not once:
        raise click.UsageError("a command needs --once")
    if words and shutil.which(words[0]) is None:
        raise CommandError(f"{words[0]} cannot be run: there is no such program")
    settings = read_or_exit(os.environ)
    config = SandboxConfig(settings, state or STATE, port or PORT, os.environ)
    if once:
        context = click.get_current_context()
        config = context.with_resource(temporary_config(state, port))
    shell = Shell(config.settings)
    config.require_fit()
    config.prepare_folders()
    _make_database(config)
    stop = Stop(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with _start_shop(config, shell.db, stop) as (key, children):
        if stop.wait():
            return
        if once:
            raise SystemExit(run_once(config, key, children, words, stop))
        click.echo(_introduction(config, shell.db, key))
        children.watch(stop)


def _make_database(config: SandboxConfig) -> None:
    """Creates the database, or migrates an existing one.

    If that fails, raises DatabaseNotReady with the advice to delete the sandbox's files
    and start over.
    """
    url = config.settings.database_url
    try:
        migrate(url, config.settings.network.name)
    except DatabaseNotReady as error:
        raise DatabaseNotReady(
            f"{error}. If it holds the sandbox's play money alone, start over: remove"
            f" {config.state} and {place_of(url)}"
        ) from None


@contextlib.contextmanager
def _start_shop(
    config: SandboxConfig,
    db: Database,
    stop: Stop,
) -> Iterator[tuple[str, Children]]:
    """Starts chain, service and check. Yields a write key and these child processes.

    It yields when the chain and the service respond, or when `stop` is set. At the end
    it stops the child processes. Raises CommandError if a child process ends, or if the
    chain or the service does not respond within a minute.
    """
    network = config.settings.network
    owner_id = merchant_id(db, config.settings)
    key = play_money_key(db, network, owner_id, config.state / "write_key")
    # A second key, for the workbench, since rate limits count by key.
    play_money_key(db, network, owner_id, config.state / "workbench_key")
    add_webhook(db, owner_id, config.chain_url, config.state / "webhook_secret")
    chain_options = ["--port", str(config.port), "--state", str(config.state)]
    chain_options += ["--shop", config.service_url]
    with Children(config.programs_environ, STOP_TIMEOUT_S, config.log) as children:
        children.start("chain", "btcpay.sandbox", *chain_options)
        _wait_for(f"{config.chain_url}/sandbox/state", children, stop)
        begin_chain(db, read(config.environ), utc_now)
        children.start("service", "btcpay", "serve")
        _wait_for(f"{config.service_url}/healthz", children, stop)
        children.start("check", "btcpay", "check", "--watch", "2")
        yield key, children


def _wait_for(url: str, children: Children, stop: Stop) -> None:
    """Waits until `url` responds with success, or until `stop` is set.

    Raises CommandError if a child process ends, or after a minute.
    """
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not stop.wait():
        try:
            requests.get(url, timeout=5).raise_for_status()
            return
        except requests.RequestException as error:
            children.require_all()
            if time.monotonic() > deadline_s:
                raise CommandError(f"{url} does not answer") from error
        stop.wait(TRIES_EVERY_S)


def _introduction(config: SandboxConfig, db: Database, key: str) -> str:
    """Returns the text that tells the user what to do with the sandbox.

    `key` is the secret of an API key.
    """
    owner_id = merchant_id(db, config.settings)
    login = login_url(db, config.settings.base_url, owner_id, utc_now())
    api = f"{config.service_url}/api/v1"
    pay_url, link_url = page_urls(api, key)
    database = place_of(config.settings.database_url)
    blocktill = command_line(sys.argv[0], config.environ)
    curl_options = "-H 'Content-Type: application/json' -d '{\"amount_usd\": 25}'"
    return f"""\
A shop with play money, on this machine alone. Ctrl-C ends it.

1. Open the workbench and press "Paid in time":
{config.chain_url}/
2. Or by hand: make an invoice, in another terminal,
curl {api}/invoices -H 'Authorization: Bearer {key}' {curl_options}
   open its pay_url, or the page of this one, and pay it at the workbench:
{pay_url}

write key     {key}
payment link  {link_url}
shop's pages  {login} (once, within ten minutes)
is all well?  {blocktill} doctor
every event   the same with `listen` in place of `doctor`
log           {config.log}, webhooks.log (emptied at each start)
start over    remove {config.state} and {database}, after Ctrl-C
"""


HOOK = hooks.Commands(commands={"sandbox": sandbox})
