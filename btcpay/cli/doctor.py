"""Command `doctor`: prints findings about the service's health, with remedies."""

import os
import sys

import click

from btcpay.cli.output import printable
from btcpay.cli.shell import Shell, with_json_shell
from btcpay.health.doctor.run import examine
from btcpay.values.finding import RED, Finding
from btcpay.values.times import utc_now

COLUMNS = "name colour sentence remedy"


@click.command()
@click.option(
    "--integrity", is_flag=True, help="Read the whole database too: pages and totals."
)
@with_json_shell
def doctor(shell: Shell, integrity: bool) -> None:
    """Examine the service's health: one line for each finding, with its remedy.

    Exit status 1 if a finding is red, else 0.
    """
    findings = []
    for finding in examine(shell.settings, os.environ, utc_now, integrity=integrity):
        findings.append(finding)
        if not shell.as_json:
            click.echo(line_of(finding))  # printed at once, since explorers may be slow
    if shell.as_json:
        shell.show([vars(finding) for finding in findings], COLUMNS)
    if any(finding.colour == RED for finding in findings):
        sys.exit(1)
    sys.exit(0)


def line_of(finding: Finding) -> str:
    """Returns the finding as one line, with unprintable characters escaped."""
    line = f"{finding.name}: {finding.sentence}"
    if finding.remedy:
        line += f" -> {finding.remedy}"
    return f"{finding.colour:<6} {printable(line)}"
