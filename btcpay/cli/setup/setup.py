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
from btcpay.cli.context import require_text, say
from btcpay.cli.database import migrated
from btcpay.cli.doctor import line_of
from btcpay.cli.merchant.access import KEY_FILE, keep
from btcpay.cli.merchant.merchant import key_of, key_option
from btcpay.cli.setup.answers import QUESTIONS, Talk, folder_of, worth_writing
from btcpay.health.doctor.run import examine
from btcpay.merchants import keys
from btcpay.merchants.account import SCRIPT_TYPES, stored_account
from btcpay.merchants.merchants import add_merchant
from btcpay.merchants.sessions import login_url, sessions_of
from btcpay.settings.env_file import VARIABLE, changed, parse
from btcpay.settings.settings import PREFIX, Settings, read
from btcpay.setup import machine
from btcpay.values.errors import CommandError
from btcpay.values.finding import GREEN, RED
from btcpay.values.networks import NETWORKS
from btcpay.values.times import utc_now
from storage.database import Database
from storage.models import Merchant
from storage.queries import merchants
from storage.versions import open_ready

A_PATH = click.Path(readable=False, path_type=Path)
PROXY = click.Choice(list(machine.PROXIES))
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
    type=click.Choice([*machine.UNITS, NO_UNITS]),
    is_flag=False,
    flag_value="run",
    help="The systemd units: of one process (run), of a service and a timer (cron), or none.",
)
@click.option("--units-folder", type=A_PATH, default=machine.OWN)
@click.option("--backups", type=A_PATH, default=machine.BACKUPS, help="For nightly backups.")
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
        click.echo(machine.template(machine.PROXIES[proxy]), nl=False)
        return
    if given["xpub"] is not None:
        given["xpub"] = key_of(given["xpub"], context.args)
    elif context.args:
        raise click.UsageError("there are more words than options: quotes may be missing")
    if given["here"]:
        given |= _in_this_folder(given)
    _Run(Talk(given, asks=sys.stdin.isatty() and not given["yes"])).go()


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
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "units": NO_UNITS,
        "yes": True,
        "no_merchant": given["merchant"] is None and given["xpub"] is None,
    }
    return {name: given[name] or text for name, text in usual.items()}


class _Run:
    """One run: a talk, and the settings that exist before it."""

    def __init__(self, talk: Talk) -> None:
        self.talk, self.given, self.asks = talk, talk.given, talk.asks
        self.uid = os.geteuid()
        usual_file, self.usual_state = machine.usual_places(os.environ, self.uid == 0)
        named = self.given["env_file"] or os.environ.get(VARIABLE, "").strip()
        self.file = Path(named).absolute() if named else usual_file
        self.text = self._present_text()
        self.present = parse(self.text, str(self.file))
        own = pwd.getpwuid(self.uid).pw_name if self.uid else "btcpay"
        self.user_name = self.given["user"] or own

    def _present_text(self) -> str:
        try:
            with open(self.file, encoding="utf-8", opener=machine.open_settings) as stream:
                return stream.read()
        except FileNotFoundError:
            return machine.template("btcpay.env")
        except UnicodeDecodeError:
            raise CommandError(f"{self.file} is not in UTF-8") from None

    def go(self) -> None:
        """Asks, then makes what is missing: a run that was cut off can be repeated."""
        self._show_where()
        if self._may_have_units() and not self.given["units_folder"].is_dir():
            raise CommandError(f"there is no folder {self.given['units_folder']} for the units")
        answers = self.talk.settings(self.present, self.usual_state)
        state = folder_of(answers.get("BTCPAY_DATABASE_URL", ""))
        is_new = state is not None and not Path(answers["BTCPAY_DATABASE_URL"][10:]).exists()
        merchant = None
        if not self.given["no_merchant"] and (is_new or self.given["merchant"]):
            merchant = self.talk.merchant(NETWORKS[answers["BTCPAY_NETWORK"]])
        user = self._make_user(state)
        text = changed(self.text, worth_writing(answers, self.present))
        said = parse(text, str(self.file))

        def as_user(work: Callable[[Settings], int | None]) -> None:
            machine.as_user(user, lambda: work(read(said)))

        as_user(lambda settings: say(migrated(settings)[1]))
        if text != self.text or not machine.is_closed(self.file):
            machine.write_settings(self.file, text, user)
            say(f"wrote {self.file}")
        if self.given["here"] and state:
            keep(state / KEY_FILE)  # `run` issues the key, and shows it
        if not self.given["no_merchant"]:
            as_user(lambda settings: self._make_merchant(settings, merchant))
        has_units = self._units(state, user)
        as_user(lambda settings: self._examine(settings, said, has_units, user))

    def _examine(
        self, settings: Settings, said: Mapping[str, str], has_units: bool, user: pwd.struct_passwd
    ) -> int:
        """Shows the doctor's findings that are not green, and the next steps; the exit status."""
        if self.given["here"]:
            self._show_what_is_next(has_units, user)
            return 0
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
        self._show_what_is_next(has_units, user)
        return int(is_broken)

    def _show_where(self) -> None:
        names = sorted(name for name in os.environ if name.startswith(PREFIX) and name != VARIABLE)
        if names:
            say(f"Note: this environment overrides the file. Unset {', '.join(names)}.")
        say(f"The settings are in {self.file}.")
        if self.asks:
            say("Enter takes the answer in brackets. Ctrl-C ends this; it can be run again.")

    def _make_user(self, state: Path | None) -> pwd.struct_passwd:
        user = machine.make_user(self.user_name)
        if self.uid not in (0, user.pw_uid):
            raise click.UsageError(f"--user: only root can make a shop for {self.user_name}")
        if state:
            machine.make_folder(state, user)
        return user

    def _make_merchant(self, settings: Settings, merchant: tuple[str, Descriptor] | None) -> None:
        """The merchant, and a key for the shop's program when there is none."""
        url, network = settings.database_url, settings.network
        with closing(open_ready(url, network.name)) as db:
            there = {row.name: row for row in db.rows(merchants.ALL)}
            if merchant is None and not there:
                merchant = self.talk.merchant(network)
            owner = _with_account(db, *merchant) if merchant else next(iter(there.values()))
            if not self.given["here"] and not keys.has_write_key(db, owner.id):
                say(f"A key for a program of {owner.name}, which may create invoices, shown once:")
                issued = keys.issue(db, network, owner.id, "write", "setup", utc_now())
                click.echo(issued.secret)
            if settings.merchant_pages and not sessions_of(db, owner.id, utc_now()):
                _show_way_in(login_url(db, settings.base_url, owner.id, utc_now()))

    def _units(self, state: Path | None, user: pwd.struct_passwd) -> bool:
        """Writes and starts the units. False where they are not wanted."""
        if not self._may_have_units() or not self._agreed(
            "units", True, "Write the systemd units?"
        ):
            return False
        backups, folder = self.given["backups"], self.given["units_folder"]
        kind = self.given["units"] or machine.UNITS[0]
        texts = machine.units(machine.program(), self.file, self.user_name, state, backups, kind)
        machine.make_folder(backups, user)
        for name in machine.unwanted(folder, texts):
            machine.systemctl("disable", "--now", name)
            (folder / name).unlink()
        packaged = machine.PACKAGED if folder == machine.OWN else None
        written = machine.write(folder, texts, packaged)
        say(f"wrote {', '.join(written)}" if written else "the units are up to date")
        machine.systemctl("daemon-reload")
        if self._agreed("start", self.asks, "Start the shop, now and at each boot?"):
            started = [name for name in machine.STARTED if name in texts]
            machine.systemctl("enable", "--now", *started)
            machine.systemctl("restart", started[0])  # it reads its settings once
        return True

    def _may_have_units(self) -> bool:
        wanted = self.given["units"]
        return self.uid == 0 and machine.SYSTEMD.is_dir() if wanted is None else wanted != NO_UNITS

    def _agreed(self, option: str, default: bool, question: str) -> bool:
        if self.given[option] is not None:
            return bool(self.given[option])
        return default and (not self.asks or click.confirm(question, default=True, err=True))

    def _show_what_is_next(self, has_units: bool, user: pwd.struct_passwd) -> None:
        command = f"{' '.join(machine.program())} --env-file {self.file}"
        # Not in the current folder: a user who may not enter root's home can serve nothing in it.
        as_user = (
            command
            if user.pw_uid == self.uid
            else f"cd / && runuser -u {user.pw_name} -- {command}"
        )
        if not has_units:
            say(f"Start it: {as_user} run")
        say(f"Examine it again: {as_user} doctor")


def _show_way_in(url: str) -> None:
    say("Link to the merchant's pages, once the service runs; for one browser, within ten minutes:")
    say(url)
    if sys.stderr.isatty():
        segno.make_qr(url).terminal(sys.stderr, compact=True)


def _with_account(db: Database, name: str, account: Descriptor) -> Merchant:
    """The merchant of this name, added if need be. Raises CommandError for another account key."""
    row = db.row(merchants.BY_NAME, name=name)
    if row is None:
        row = add_merchant(db, name, account, utc_now())
        say(f"added {name}")
    elif stored_account(row.descriptor).script(0) == account.script(0):
        say(f"the merchant {name} is there already")
    else:
        raise CommandError(f"the merchant {name} has another account key: choose a new name")
    return row
