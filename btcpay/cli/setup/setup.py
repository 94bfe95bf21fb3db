"""Command `setup`: collects settings, and creates what a shop needs on this machine.

Settings and files that exist already are kept. The merchant is created later: in a
browser, or by `merchant add`.
"""

import os
import pwd
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from btcpay.cli.merchant.access import KEY_FILE, write_secret
from btcpay.cli.output import say
from btcpay.cli.setup import machine, units
from btcpay.cli.setup.interview import Interview
from btcpay.cli.setup.owner_steps import examine, migrate, show_first_step
from btcpay.cli.setup.questions import QUESTIONS, worth_writing
from btcpay.cli.shell import require_text
from btcpay.settings.env_file import VARIABLE, changed_text, parse
from btcpay.settings.settings import PREFIX, Settings, read
from storage.database import sqlite_path

A_PATH = click.Path(readable=False, path_type=Path)
PROXIES = {"nginx": "nginx.conf", "caddy": "Caddyfile"}
PROXY = click.Choice(list(PROXIES))
OPTIONS_OF_QUESTIONS = [
    click.Option([question.option], help=question.text, metavar="TEXT")
    for question in QUESTIONS
]


@click.command(params=[*OPTIONS_OF_QUESTIONS])
@click.option("--env-file", type=A_PATH, metavar="FILE", help="The settings.")
@click.option(
    "--user", help="The owner of service and database. [default as root: blocktill]"
)
@click.option(
    "--units",
    type=click.Choice([*units.KINDS, units.NONE]),
    is_flag=False,
    flag_value="run",
    help="The systemd units: of one process (run), of a service and a timer (cron), or none.",
)
@click.option("--units-folder", type=A_PATH, default=units.OWN)
@click.option(
    "--backups",
    type=A_PATH,
    default=units.BACKUPS,
    help="For nightly backups.",
)
@click.option(
    "--start/--no-start", default=None, help="Start the shop, now and at each boot."
)
@click.option(
    "--proxy-config", type=PROXY, help="Only print an example for a TLS proxy."
)
@click.option(
    "--here", is_flag=True, help="A shop with play money in this folder, to develop."
)
@click.option(
    "--yes", is_flag=True, help="Ask nothing: keep present answers, else use defaults."
)
def setup(**options: Any) -> None:
    """Make a shop on this machine, or change one: settings, database, systemd units.

    Afterwards, its merchant is made in a browser, or by `merchant add`.
    """
    require_text(options.values())
    if proxy := options.pop("proxy_config"):
        click.echo(units.template(PROXIES[proxy]), nl=False)
        return
    if options["here"]:
        options |= _options_of_here(options)
    asks = sys.stdin.isatty() and not options["yes"]
    _SetupRun(options, asks).run()


def _options_of_here(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of `--here`: those that are given, and its defaults for the others.

    Raises UsageError for mainnet.
    """
    network = options["network"] or "testnet4"
    if network == "mainnet":
        raise click.UsageError("--here is for play money: not for mainnet")
    defaults = {
        "network": network,
        "env_file": f"{network}.env",
        "database_url": f"sqlite:///{Path.cwd()}/var/{network}.db",
        "user": machine.this_user().pw_name,
        "units": units.NONE,
        "yes": True,
    }
    return {name: options[name] or default for name, default in defaults.items()}


class _SetupRun(Interview):
    """One run of `setup`: the prompts, and the settings that existed before it."""

    def __init__(self, options: Mapping[str, Any], asks: bool) -> None:
        super().__init__(options, asks)
        self.me = machine.this_user()
        self.is_root = os.geteuid() == 0
        default_file = "blocktill.env"
        self.default_user = self.me.pw_name
        self.state = Path("var").absolute()  # the folder of a new database
        if self.is_root:
            default_file = "/etc/blocktill.env"
            self.default_user = "blocktill"
            self.state = machine.STATE
        file = options["env_file"] or os.environ.get(VARIABLE, "").strip()
        self.file = Path(file or default_file).absolute()
        self.text = machine.text_of(self.file, units.template("blocktill.env"))
        self.present = parse(self.text, str(self.file))

    def run(self) -> None:
        """Asks for the settings, then creates the parts of the shop that are missing.

        They may be the system user, the folder, the database, the settings file and the
        systemd units. If this method is interrupted, it can be run again.
        """
        self._show_overriding()
        options = self.options
        kind = units.choose_kind(options["units"], options["start"], self._command)
        answers = self.settings(self.present, self.state)
        sqlite_file = sqlite_path(answers.get("BLOCKTILL_DATABASE_URL", ""))
        state = None  # the folder of the SQLite file; None for PostgreSQL
        if sqlite_file:
            state = sqlite_file.parent
        user = self._make_user(state)
        text = changed_text(self.text, worth_writing(answers, self.present))
        environ = parse(text, str(self.file))

        def as_user(work: Callable[[Settings], None]) -> None:
            """Runs `work` with the rights of the owner, and with the new settings."""
            machine.as_user(user, lambda: work(read(environ)))

        as_user(migrate)
        self._write_settings(text, user)
        if options["here"] and state:
            # An empty file: `run` then issues a key, and prints it.
            write_secret(state / KEY_FILE)
        has_units = kind != units.NONE
        if has_units:
            self._write_units(kind, state, user)
        if not options["here"]:
            as_user(lambda settings: examine(settings, environ, self._command))
        command = self._command_of(user)
        if not has_units:
            say(f"Start it: {command} run")
        as_user(lambda settings: show_first_step(settings, command, has_units))
        say(f"Examine it again: {command} doctor")

    def _write_settings(self, text: str, user: pwd.struct_passwd) -> None:
        """Writes the settings file, unless it has this text and the right mode already."""
        if text == self.text and machine.has_right_mode(self.file, user):
            say(f"{self.file} is up to date")
            return
        machine.write_settings(self.file, text, user)
        say(f"wrote {self.file}")

    @property
    def _command(self) -> str:
        """The beginning of this shop's commands, for whoever runs `setup`."""
        return f"{machine.PROGRAM} --env-file {self.file}"

    def _show_overriding(self) -> None:
        """Prints which settings the environment has too: they override the file."""
        names = {name for name in os.environ if name.startswith(PREFIX)}
        overriding = sorted(names - {VARIABLE})
        if overriding:
            say(
                f"Note: this environment overrides the file. Unset {', '.join(overriding)}."
            )

    def _make_user(self, state: Path | None) -> pwd.struct_passwd:
        """Returns the user who owns service and database. Creates user and folder if missing.

        Raises UsageError if only root could set up a shop for this user, and
        CommandError if the user cannot be created.
        """
        name = self.options["user"] or self.default_user
        user = machine.make_user(name)
        if not self.is_root and user != self.me:
            raise click.UsageError(f"--user: only root can make a shop for {name}")
        if state:
            machine.make_folder(state, user)
        return user

    def _write_units(
        self,
        kind: str,
        state: Path | None,
        user: pwd.struct_passwd,
    ) -> None:
        """Writes the systemd units, and starts them if that is wanted.

        `_is_start_wanted` decides that.
        """
        backups = self.options["backups"]
        texts = units.units(
            machine.PROGRAM,
            self.file,
            user.pw_name,
            state=state,
            backups=backups,
            kind=kind,
        )
        machine.make_folder(backups, user)
        names = units.install(self.options["units_folder"], texts)
        if names:
            say(f"wrote {', '.join(names)}")
        else:
            say("the units are up to date")
        if self._is_start_wanted():
            units.start(texts)

    def _is_start_wanted(self) -> bool:
        """Returns the option --start or --no-start; without it, asks.

        If nobody can be asked, the option --yes means yes.
        """
        start = self.options["start"]
        if start is not None:
            return bool(start)
        if self.asks:
            question = "Start the shop, now and at each boot?"
            return click.confirm(question, default=True, err=True)
        return bool(self.options["yes"])

    def _command_of(self, user: pwd.struct_passwd) -> str:
        """Returns the beginning of this shop's commands, for a shell of this user."""
        if user == self.me:
            return self._command
        # `cd /`: a user who may not enter this folder, such as root's home, cannot serve in it.
        return f"cd / && runuser -u {user.pw_name} -- {self._command}"
