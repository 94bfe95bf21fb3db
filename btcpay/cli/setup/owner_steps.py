"""The steps of `setup` that need the database, and run as its owner."""

from collections.abc import Mapping, Set
from contextlib import closing

from btcpay.cli.database import run_migrations
from btcpay.cli.doctor import line_of
from btcpay.cli.output import say
from btcpay.health.doctor.run import examine as findings_of_doctor
from btcpay.settings.settings import Settings
from btcpay.values.finding import GREEN, RED, YELLOW, Colour
from btcpay.values.times import utc_now
from storage.queries import merchants
from storage.versions import open_ready


def migrate(settings: Settings) -> None:
    say(run_migrations(settings).text)


def examine(settings: Settings, environ: Mapping[str, str], command: str) -> None:
    """Prints the findings of `blocktill doctor` that are not green.

    `command` is the beginning of this shop's commands for whoever runs `setup`.
    """
    say("What `blocktill doctor` finds:")
    colours = set()
    for finding in findings_of_doctor(settings, environ, utc_now):
        colours.add(finding.colour)
        if finding.colour != GREEN:
            say(line_of(finding))
    if conclusion := conclusion_of(colours, command):
        say(conclusion)


def conclusion_of(colours: Set[Colour], command: str) -> str:
    """Returns the sentence after the findings of these colours; "" if there is none.

    `command` is the beginning of a `blocktill` command line.
    """
    if RED in colours:
        return f"Repair what is red, then run `{command} setup` again."
    if YELLOW in colours:
        return ""
    return "All is well."


def show_first_step(settings: Settings, command: str, has_units: bool) -> None:
    """Prints how to create the first merchant, unless there is one already."""
    with closing(open_ready(settings.database_url, settings.network.name)) as db:
        if db.rows(merchants.ALL):
            return
    if not settings.merchant_pages:
        say(f"Then add the merchant: {command} merchant add NAME --xpub -")
    elif settings.owner_password:
        say(
            f"Then make the merchant in a browser: {settings.base_url}/merchant asks for"
            " BLOCKTILL_OWNER_PASSWORD."
        )
    else:
        place = ""
        if has_units:
            place = ": journalctl --unit blocktill.service"
        say(
            "Then make the merchant in a browser: the shop prints the link when it starts"
            f"{place}"
        )
