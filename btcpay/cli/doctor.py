"""`doctor`: whether all is well, and what to do where it is not."""

import os
import sys

import click

from btcpay.cli.context import Shell, answer_json, as_json, printable, with_shell
from btcpay.health.doctor.finding import RED
from btcpay.health.doctor.run import examine
from btcpay.values.times import utc_now

COLUMNS = ("name", "colour", "sentence", "remedy")


@click.command()
@click.option("--integrity", is_flag=True, help="Read the whole database too: pages and totals.")
@as_json
@with_shell
def doctor(shell: Shell, integrity: bool, as_json: bool) -> None:
    """Look into the service's health: one line for each finding, with what helps.

    Exit status 1 when anything is red.
    """
    findings = list(examine(shell.settings, os.environ, utc_now, integrity=integrity))
    if as_json:
        answer_json([{name: vars(finding)[name] for name in COLUMNS} for finding in findings])
    else:
        for finding in findings:
            remedy = f" -> {finding.remedy}" if finding.remedy else ""
            line = f"{finding.name}: {finding.brief or finding.sentence}{remedy}"
            click.echo(f"{finding.colour:<6} {printable(line)}")
    sys.exit(any(finding.colour == RED for finding in findings))
