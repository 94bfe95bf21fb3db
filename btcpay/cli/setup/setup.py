"""`setup`: asks for all that a shop needs, and makes it; whatever exists already stays."""

import os
import pwd
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from btcpay.cli.context import require_text, say
from btcpay.cli.database import migrated
from btcpay.cli.doctor import line_of
from btcpay.cli.merchant.access import KEY_FILE, keep
from btcpay.cli.merchant.merchant import key_of, key_option
from btcpay.cli.setup import machine, units
from btcpay.cli.setup.answers import QUESTIONS, Talk, worth_writing
from btcpay.cli.setup.first_merchant import make_merchant
from btcpay.health.doctor.run import examine
from btcpay.merchants.account import SCRIPT_TYPES
from btcpay.settings.env_file import VARIABLE, changed, parse
from btcpay.settings.settings import PREFIX, Settings, read
from btcpay.values.errors import CommandError
from btcpay.values.finding import GREEN, RED
from btcpay.values.networks import NETWORKS
from btcpay.values.times import utc_now
from storage.database import sqlite_path

A_PATH = click.Path(readable=False, path_type=Path)
PROXIES = {"nginx": "nginx.conf", "caddy": "Caddyfile"}
PROXY = click.Choice(list(PROXIES))
NO_UNITS = "none"
OF_QUESTIONS = [click.Option([q.option], help=q.text, metavar="TEXT") for q in QUESTIONS]


# Unexpected words may be seed words, so none of click's messages may repeat them.
@click.command(params=[*OF_QUESTIONS], context_settings={"allow_extra_args": True})
@click.option("--merchant", metavar="NAME", help="Who is paid.")
@key_option(help="Extended PUBLIC key, or descriptor; - to paste it.")
@click.option("--no-merchant", is_flag=True, help="None yet: a backup will be restored.")
@click.option("--script", type=click.Choice(SCRIPT_TYPES), help="For an xpub or tpub.")
@click.option("--env-file", type=A_PATH, metavar="FILE", help="The settings. [default: as shown]")
@click.option("--user", help="The owner of service and database. [default as root: btcpay]")
@click.option(
    "--units",
    type=click.Choice([*units.KINDS, NO_UNITS]),
    is_flag=False,
    flag_value="run",
    help="The systemd units: of one process (run), of a service and a timer (cron), or none.",
)
@click.option("--units-folder", type=A_PATH, default=units.OWN)
@click.option("--backups", type=A_PATH, default=units.BACKUPS, help="For nightly backups.")
@click.option("--start/--no-start", default=None, help="Start the shop, now and at each boot.")
@click.option("--proxy-config", type=PROXY, help="Only print an example for a TLS proxy.")
@click.option("--here", is_flag=True, help="A shop with play money in this folder, to develop.")
@click.option("--yes", is_flag=True, help="Ask nothing: keep present answers, else use defaults.")
@click.pass_context
def setup(context: click.Context, /, **given: Any) -> None:
    """Make a shop, or change one: settings, database, merchant, key, units.

    Exit status 1 when `doctor` finds anything red that needs no network.
    """
    require_text(given.values())
    if proxy := given.pop("proxy_config"):
        click.echo(units.template(PROXIES[proxy]), nl=False)
        return
    if given["xpub"] is not None:
        given["xpub"] = key_of(given["xpub"], context.args)
    elif context.args:
        raise click.UsageError("there are more words than options: quotes may be missing")
    if given["here"]:
        given |= _in_this_folder(given)
    _Run(given, asks=sys.stdin.isatty() and not given["yes"]).go()


def _in_this_folder(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that `--here` stands for; options that were given stay."""
    network = given["network"] or "testnet4"
    if network == "mainnet":
        raise click.UsageError("--here is for play money: not for mainnet")
    usual = {
        "network": network,
        "env_file": f"{network}.env",
        "base_url": "http://127.0.0.1:8000",
        "database_url": f"sqlite:///{Path.cwd()}/var/{network}.db",
        "user": machine.this_user().pw_name,
        "units": NO_UNITS,
        "yes": True,
        "no_merchant": given["merchant"] is None and given["xpub"] is None,
    }
    return {name: given[name] or text for name, text in usual.items()}


class _Run(Talk):
    """One run: a talk, and the settings that exist before it."""

    def __init__(self, given: Mapping[str, Any], asks: bool) -> None:
        super().__init__(given, asks)
        self.me, self.is_root = machine.this_user(), os.geteuid() == 0
        usual_file, self.usual_state = machine.usual_places(os.environ, self.is_root)
        named = given["env_file"] or os.environ.get(VARIABLE, "").strip()
        self.file = Path(named).absolute() if named else usual_file
        self.text = machine.text_of(self.file, units.template("btcpay.env"))
        self.present = parse(self.text, str(self.file))

    def go(self) -> None:
        """Asks, then makes what is missing: a run that was cut off can be repeated."""
        self._show_where()
        given, may_have_units = self.given, self._may_have_units()
        answers = self.settings(self.present, self.usual_state)
        database = sqlite_path(answers.get("BTCPAY_DATABASE_URL", ""))
        merchant = None
        if not given["no_merchant"] and (given["merchant"] or (database and not database.exists())):
            merchant = self.merchant(NETWORKS[answers["BTCPAY_NETWORK"]])
        state = database and database.parent
        user = self._make_user(state)
        text = changed(self.text, worth_writing(answers, self.present))
        said = parse(text, str(self.file))

        def as_user(work: Callable[[Settings], int | None]) -> None:
            machine.as_user(user, lambda: work(read(said)))

        as_user(lambda settings: say(migrated(settings)[1]))
        if text != self.text or not machine.is_closed(self.file):
            machine.write_settings(self.file, text, user)
            say(f"wrote {self.file}")
        if given["here"] and state:
            keep(state / KEY_FILE)  # `run` issues the key, and shows it
        if not given["no_merchant"]:
            as_user(lambda settings: make_merchant(self, settings, merchant))
        has_units = may_have_units and self._units(state, user)
        as_user(lambda settings: self._examine(settings, said, has_units, user))

    def _show_where(self) -> None:
        names = sorted(name for name in os.environ if name.startswith(PREFIX) and name != VARIABLE)
        if names:
            say(f"Note: this environment overrides the file. Unset {', '.join(names)}.")
        say(f"The settings are in {self.file}.")
        if self.asks:
            say("Enter takes the answer in brackets. Ctrl-C ends this; it can be run again.")

    def _may_have_units(self) -> bool:
        """Raises CommandError where they are wanted and there is no folder for them."""
        wanted, folder = self.given["units"], self.given["units_folder"]
        may = self.is_root and units.SYSTEMD.is_dir() if wanted is None else wanted != NO_UNITS
        if may and not folder.is_dir():
            raise CommandError(f"there is no folder {folder} for the units")
        return may

    def _make_user(self, state: Path | None) -> pwd.struct_passwd:
        name = self.given["user"] or ("btcpay" if self.is_root else self.me.pw_name)
        user = machine.make_user(name)
        if not self.is_root and user != self.me:
            raise click.UsageError(f"--user: only root can make a shop for {name}")
        if state:
            machine.make_folder(state, user)
        return user

    def _units(self, state: Path | None, user: pwd.struct_passwd) -> bool:
        """Writes and starts the units. False where they are not wanted."""
        if not self._agreed("units", True, "Write the systemd units?"):
            return False
        backups, kind = self.given["backups"], self.given["units"] or units.KINDS[0]
        texts = units.units(machine.program(), self.file, user.pw_name, state, backups, kind)
        machine.make_folder(backups, user)
        written = units.install(self.given["units_folder"], texts)
        say(f"wrote {', '.join(written)}" if written else "the units are up to date")
        if self._agreed("start", self.asks, "Start the shop, now and at each boot?"):
            units.start(texts)
        return True

    def _agreed(self, option: str, default: bool, question: str) -> bool:
        if self.given[option] is not None:
            return bool(self.given[option])
        return default and (not self.asks or click.confirm(question, default=True, err=True))

    def _examine(
        self, settings: Settings, said: Mapping[str, str], has_units: bool, user: pwd.struct_passwd
    ) -> int:
        """Shows the doctor's findings that are not green, and the next steps; the exit status."""
        is_broken = not self.given["here"] and _is_broken(settings, said)
        command = f"{' '.join(machine.program())} --env-file {self.file}"
        if user != self.me:
            # Not in this folder: a user who may not enter root's home can serve nothing in it.
            command = f"cd / && runuser -u {user.pw_name} -- {command}"
        if not has_units:
            say(f"Start it: {command} run")
        say(f"Examine it again: {command} doctor")
        return int(is_broken)


def _is_broken(settings: Settings, said: Mapping[str, str]) -> bool:
    """Shows what the doctor finds; True where anything is red that needs no network."""
    say("What `btcpay doctor` finds:")
    red = []
    for finding in examine(settings, said, utc_now):
        if finding.colour != GREEN:
            say(line_of(finding))
        if finding.colour == RED:
            red.append(finding)
    is_broken = not all(finding.is_outside for finding in red)
    well = "All is well, apart from what needs the network." if red else "All is well."
    say("Repair what is red, then run `btcpay setup` again." if is_broken else well)
    return is_broken
