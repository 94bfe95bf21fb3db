"""`setup`: asks for all that a shop needs, and makes it; whatever exists already stays."""

import os
import pwd
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import segno

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.check.beginning import begin_chain
from btcpay.cli.context import require_text, say
from btcpay.cli.database import run_migrations
from btcpay.cli.doctor import line_of
from btcpay.cli.merchant.access import KEY_FILE, keep
from btcpay.cli.merchant.merchant import key_of, key_option
from btcpay.cli.setup import machine, units
from btcpay.cli.setup.answers import QUESTIONS, Talk, worth_writing
from btcpay.health.doctor.run import examine
from btcpay.merchants import keys
from btcpay.merchants.account import SCRIPT_TYPES, stored_account
from btcpay.merchants.merchants import add_merchant
from btcpay.merchants.sessions import login_url
from btcpay.settings.env_file import VARIABLE, changed, parse
from btcpay.settings.settings import PREFIX, Settings, read
from btcpay.values.errors import CommandError
from btcpay.values.finding import GREEN
from btcpay.values.networks import NETWORKS
from btcpay.values.times import utc_now
from storage.database import sqlite_path
from storage.queries import merchants
from storage.versions import open_ready

A_PATH = click.Path(readable=False, path_type=Path)
PROXIES = {"nginx": "nginx.conf", "caddy": "Caddyfile"}
PROXY = click.Choice(list(PROXIES))
OF_QUESTIONS = [
    click.Option([q.option], help=q.text, metavar="TEXT") for q in QUESTIONS
]


# Unexpected words may be seed words, so none of click's messages may repeat them.
@click.command(params=[*OF_QUESTIONS], context_settings={"allow_extra_args": True})
@click.option("--merchant", metavar="NAME", help="Who is paid.")
@key_option(help="Extended PUBLIC key, or descriptor; - to paste it.")
@click.option("--script", type=click.Choice(SCRIPT_TYPES), help="For an xpub or tpub.")
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
    "--backups", type=A_PATH, default=units.BACKUPS, help="For nightly backups."
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
@click.pass_context
def setup(context: click.Context, /, **given: Any) -> None:
    """Make a shop, or change one: settings, database, merchant, key, units."""
    require_text(given.values())
    if proxy := given.pop("proxy_config"):
        click.echo(units.template(PROXIES[proxy]), nl=False)
        return
    if given["xpub"] is not None:
        given["xpub"] = key_of(given["xpub"], context.args)
    elif context.args:
        raise click.UsageError(
            "there are more words than options: quotes may be missing"
        )
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
        "database_url": f"sqlite:///{Path.cwd()}/var/{network}.db",
        "user": machine.this_user().pw_name,
        "units": units.NONE,
        "yes": True,
    }
    return {name: given[name] or text for name, text in usual.items()}


class _Run(Talk):
    """One run: a talk, and the settings that exist before it."""

    def __init__(self, given: Mapping[str, Any], asks: bool) -> None:
        super().__init__(given, asks)
        self.me = machine.this_user()
        self.is_root = os.geteuid() == 0
        usual = "/etc/blocktill.env" if self.is_root else "blocktill.env"
        named = given["env_file"] or os.environ.get(VARIABLE, "").strip()
        self.file = Path(named or usual).absolute()
        self.usual_state = machine.STATE if self.is_root else Path("var").absolute()
        self.text = machine.text_of(self.file, units.template("blocktill.env"))
        self.present = parse(self.text, str(self.file))

    def go(self) -> None:
        """Asks, then makes what is missing: a run that was cut off can be repeated."""
        self._show_where()
        given = self.given
        kind = units.chosen_kind(given["units"], given["start"], self._command)
        answers = self.settings(self.present, self.usual_state)
        database = sqlite_path(answers.get("BLOCKTILL_DATABASE_URL", ""))
        merchant = None
        is_new = database and not database.exists()
        if given["merchant"] or given["xpub"] or (self.asks and is_new):
            merchant = self.merchant(NETWORKS[answers["BLOCKTILL_NETWORK"]])
        state = database and database.parent
        user = self._make_user(state)
        text = changed(self.text, worth_writing(answers, self.present))
        said = parse(text, str(self.file))

        def as_user(work: Callable[[Settings], None]) -> None:
            machine.as_user(user, lambda: work(read(said)))

        as_user(lambda settings: say(run_migrations(settings)[1]))
        if text != self.text or not machine.is_closed(self.file):
            machine.write_settings(self.file, text, user)
            say(f"wrote {self.file}")
        if given["here"] and state:
            keep(state / KEY_FILE)  # `run` issues the key, and shows it
        if merchant:
            as_user(lambda settings: _make_merchant(settings, *merchant))
        has_units = kind != units.NONE
        if has_units:
            self._write_units(kind, state, user)
        if not given["here"]:
            as_user(lambda settings: _examine(settings, said))
        self._say_next(has_units, user)

    @property
    def _command(self) -> str:
        return f"{machine.PROGRAM} --env-file {self.file}"

    def _show_where(self) -> None:
        names = sorted(
            name for name in os.environ if name.startswith(PREFIX) and name != VARIABLE
        )
        if names:
            say(f"Note: this environment overrides the file. Unset {', '.join(names)}.")
        say(f"The settings are in {self.file}.")

    def _make_user(self, state: Path | None) -> pwd.struct_passwd:
        name = self.given["user"] or ("blocktill" if self.is_root else self.me.pw_name)
        user = machine.make_user(name)
        if not self.is_root and user != self.me:
            raise click.UsageError(f"--user: only root can make a shop for {name}")
        if state:
            machine.make_folder(state, user)
        return user

    def _write_units(
        self, kind: str, state: Path | None, user: pwd.struct_passwd
    ) -> None:
        """Writes the units, and starts them if that is wanted."""
        backups = self.given["backups"]
        is_wanted = self.given["start"]
        texts = units.units(
            machine.PROGRAM, self.file, user.pw_name, state, backups, kind
        )
        machine.make_folder(backups, user)
        written = units.install(self.given["units_folder"], texts)
        say(f"wrote {', '.join(written)}" if written else "the units are up to date")
        if is_wanted is None and self.asks:
            question = "Start the shop, now and at each boot?"
            is_wanted = click.confirm(question, default=True, err=True)
        if is_wanted:
            units.start(texts)

    def _say_next(self, has_units: bool, user: pwd.struct_passwd) -> None:
        command = self._command
        if user != self.me:
            # Not in this folder: a user who may not enter root's home can serve nothing in it.
            command = f"cd / && runuser -u {user.pw_name} -- {command}"
        if not has_units:
            say(f"Start it: {command} run")
        say(f"Examine it again: {command} doctor")


def _examine(settings: Settings, said: Mapping[str, str]) -> None:
    """Shows what the doctor finds that is not green."""
    say("What `blocktill doctor` finds:")
    found = [one for one in examine(settings, said, utc_now) if one.colour != GREEN]
    for finding in found:
        say(line_of(finding))
    say(
        "Repair what is red, then run `blocktill setup` again."
        if found
        else "All is well."
    )


def _make_merchant(settings: Settings, name: str, account: Descriptor) -> None:
    """Adds the merchant, or leaves the one of this name. Raises CommandError for another key."""
    url = settings.database_url
    network = settings.network
    now = utc_now()
    with closing(open_ready(url, network.name)) as db:
        there = db.row(merchants.BY_NAME, name=name)
        if there and stored_account(there.descriptor).script(0) != account.script(0):
            raise CommandError(
                f"the merchant {name} has another account key: choose a new name"
            )
        if there:
            say(f"the merchant {name} is there already")
            return
        owner = add_merchant(db, name, account, now)
        begin_chain(db, settings, utc_now)
        say(
            f"added {name}, and a key for its program, which may create invoices, shown once:"
        )
        click.echo(keys.issue(db, network, owner.id, "write", "setup", now).secret)
        if settings.merchant_pages:
            say(
                "Link to the merchant's pages, once the service runs; within ten minutes:"
            )
            say(url := login_url(db, settings.base_url, owner.id, now))
            if machine.has_blocks(sys.stderr):
                segno.make_qr(url).terminal(sys.stderr, compact=True)
