"""`setup`: asks what a shop needs, and makes it; whatever is there already stays."""

import os
import pwd
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from btcpay.cli.context import printable, require_text, say
from btcpay.cli.merchant.merchant import key_of
from btcpay.cli.setup.answers import Answers, Talk, refuse
from btcpay.health.state import GREEN, RED
from btcpay.merchants.account import SCRIPT_TYPES, Account, derive
from btcpay.settings.env_file import VARIABLE, parse
from btcpay.settings.settings import PREFIX
from btcpay.setup import env_lines, places, units
from btcpay.setup.questions import QUESTIONS, folder_of
from btcpay.setup.shop import Shop
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS

NEEDS_THE_NETWORK = re.compile("explorer|price|clock|addresses")


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for question in reversed(QUESTIONS):
        function = click.option(question.option, help=question.help, metavar="TEXT")(function)
    return function


# Words that nobody asked for may be seed words: no message of click's may repeat them.
@click.command(context_settings={"allow_extra_args": True})
@_options
@click.option("--merchant", metavar="NAME", help="Who is paid.")
@click.option("--xpub", metavar="KEY", help="The account's extended PUBLIC key; - to paste it.")
@click.option("--no-merchant", is_flag=True, help="None yet: a backup is to be restored.")
@click.option("--script", type=click.Choice(SCRIPT_TYPES), help="For an xpub or tpub.")
@click.option(
    "--env-file", type=click.Path(dir_okay=False, readable=False, path_type=Path), metavar="FILE"
)
@click.option("--user", help="Whom service and database belong to. [default as root: btcpay]")
@click.option("--units/--no-units", default=None, help="Write the systemd units.")
@click.option(
    "--units-folder",
    type=click.Path(readable=False, path_type=Path),
    default="/etc/systemd/system",
    metavar="PATH",
)
@click.option(
    "--backups",
    type=click.Path(readable=False, path_type=Path),
    default=units.BACKUPS,
    metavar="PATH",
    help="Where the backup of every night goes.",
)
@click.option("--start/--no-start", default=None, help="Start the shop, now and at each boot.")
@click.option("--yes", is_flag=True, help="Ask nothing: present answers and usual ones hold.")
@click.pass_context
def setup(context: click.Context, /, **given: Any) -> None:
    """Make a shop, or change one: settings, database, merchant, key, units.

    Exit status 1 when `doctor` is red about anything that needs no network.
    """
    require_text(given.values())
    if given["xpub"] is not None:
        given["xpub"] = key_of(given["xpub"], context.args)
    elif context.args:
        refuse("there are more words than options: quotes may be missing")
    sys.exit(_Run(Talk(given, asks=sys.stdin.isatty() and not given["yes"])).go())


class _Run:
    """One run: a talk, and what there is before it."""

    def __init__(self, talk: Talk) -> None:
        self.talk, self.given, self.asks = talk, talk.given, talk.asks
        self.usual = places.usual_places(os.environ, os.geteuid() == 0)
        named = self.given["env_file"] or os.environ.get(VARIABLE, "").strip()
        self.file = Path(named).absolute() if named else self.usual.env_file
        self.text = self._present_text()
        self.present = parse(self.text, str(self.file))
        self.user_name = self.given["user"] or self._usual_user()

    def _present_text(self) -> str:
        try:
            return self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return units.template("btcpay.env")
        except UnicodeDecodeError:
            raise CommandError(f"{self.file} is not in UTF-8") from None

    def _usual_user(self) -> str:
        own = pwd.getpwuid(os.geteuid()).pw_name
        return "btcpay" if os.geteuid() == 0 else own

    def go(self) -> int:
        """Asks and does, so that a run that was cut off can be made again; the exit status."""
        self._tell_of_environment()
        answers = self.talk.settings(self.present, self.usual.state)
        state = folder_of(answers.get("BTCPAY_DATABASE_URL", ""))
        network = NETWORKS[answers["BTCPAY_NETWORK"]]
        is_new = state is not None and not Path(answers["BTCPAY_DATABASE_URL"][10:]).exists()
        wants = not self.given["no_merchant"]
        is_told = is_new or self.given["merchant"]
        merchant = self.talk.merchant(network) if wants and is_told else None
        shop = self._prepare(answers, state)
        there = shop.merchants()
        if wants and merchant is None and not there:
            merchant = self.talk.merchant(network)
        if merchant:
            self._add(shop, there, *merchant)
        owner = merchant[0] if merchant else next(iter(there), None)
        if wants and owner and not shop.may_write(owner):
            say(f"The key of {owner}'s program, which may create invoices; it is shown this once:")
            shop.run(["key", "issue", owner, "--scope", "write", "--name", "setup"], shown=True)
        has_units = self._units(state)
        return self._examine(shop, has_units)

    def _tell_of_environment(self) -> None:
        names = sorted(name for name in os.environ if name.startswith(PREFIX) and name != VARIABLE)
        if names:
            say(f"Note: {', '.join(names)} in this environment stands before the file. Unset it.")
        say(f"The settings are in {self.file}.")
        if self.asks:
            say("Enter takes what stands in brackets. Ctrl-C ends this; it may be run again.")

    def _prepare(self, answers: Answers, state: Path | None) -> Shop:
        """User, folder, database and file of settings, in this order."""
        user = places.make_user(self.user_name)
        if user.pw_uid != os.geteuid() and os.geteuid() != 0:
            refuse(f"--user: only root makes a shop for {self.user_name}")
        if state:
            places.make_folder(state, user)
        changes = {q.variable: answers.get(q.variable, "") for q in QUESTIONS}
        text = env_lines.changed(self.text, _worth_saying(changes, self.present))
        shop = Shop(parse(text, str(self.file)), user)
        say(shop.run(["migrate"]).strip())
        if text != self.text or not places.is_closed(self.file):
            places.write_settings(self.file, text, user)
            say(f"wrote {self.file}")
        return shop

    def _add(self, shop: Shop, there: list[str], name: str, account: Account) -> None:
        first = derive(
            account.text, account.script_type, 0, NETWORKS[shop.settings["BTCPAY_NETWORK"]]
        )
        if name in there:
            if shop.first_address(name) != first:
                raise CommandError(
                    f"the merchant {name} has another account key: choose a new name"
                )
            say(f"the merchant {name} is there already")
            return
        words = ["merchant", "add", name, "--xpub", "-", "--yes", "--script", account.script_type]
        say(shop.run(words, typed=f"{account.text}\n").strip())

    def _units(self, state: Path | None) -> bool:
        """Writes and starts the units, if they are wanted; whether they are."""
        may = os.geteuid() == 0 and units.SYSTEMD.is_dir()
        if not self._agreed("units", may, "Write the systemd units?"):
            return False
        user = places.make_user(self.user_name)
        texts = units.units(
            places.program(), self.file, self.user_name, state, self.given["backups"]
        )
        places.make_folder(self.given["backups"], user)
        written = units.write(self.given["units_folder"], texts)
        say(f"wrote {', '.join(written)}" if written else "the units are as they should be")
        units.systemctl("daemon-reload")
        if self._agreed("start", self.asks, "Start the shop, now and at each boot?"):
            units.systemctl("enable", "--now", *units.STARTED)
            units.systemctl("restart", units.STARTED[0])  # it reads its settings once
        return True

    def _agreed(self, option: str, default: bool, question: str) -> bool:
        if self.given[option] is not None:
            return bool(self.given[option])
        return default and (not self.asks or click.confirm(question, default=True, err=True))

    def _examine(self, shop: Shop, has_units: bool) -> int:
        """What `doctor` says, and what to do next; the exit status."""
        findings = [row for row in shop.ask("doctor") if row["colour"] != GREEN]
        for row in findings:
            line = f"{row['name']}: {row['sentence']}"
            say(
                f"{row['colour']:<6} {printable(line)}"
                + (f" -> {row['remedy']}" * bool(row["remedy"]))
            )
        red = [row["name"] for row in findings if row["colour"] == RED]
        own = [name for name in red if not NEEDS_THE_NETWORK.match(name)]
        command = f"{' '.join(places.program())} --env-file {self.file}"
        is_own, user = shop.user.pw_uid == os.geteuid(), shop.user.pw_name
        # Not from here: a user who may not enter root's home can serve nothing in it.
        as_user = command if is_own else f"cd / && runuser -u {user} -- {command}"
        if own:
            say("Repair what is red; `btcpay setup` again does no harm.")
        elif red:
            say("All is well but for what needs the network.")
        else:
            say("All is well.")
        if not has_units:
            say(f"Serve, behind a proxy that speaks TLS: {as_user} serve")
            say(f"Settle, a line for `crontab{'' if is_own else f' -u {user}'} -e`:")
            say(f"* * * * * {command} check --quiet")
        say(f"Look at it again: {as_user} doctor")
        return int(bool(own))


def _worth_saying(changes: Mapping[str, str], present: Mapping[str, str]) -> Answers:
    """What the file does not say yet, without those answers that are what a setting is anyway."""
    usual = {"BTCPAY_TRUSTED_PROXIES": "0", "BTCPAY_EMAIL_RETENTION_DAYS": "0"}
    return {
        name: text
        for name, text in changes.items()
        if text != present.get(name, "") and (name in present or text != usual.get(name, ""))
    }
