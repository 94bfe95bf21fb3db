"""Makes the package's man page and systemd units, which the program describes itself."""

import gzip
import sys
from pathlib import Path

import click

from btcpay.cli.main import cli
from btcpay.cli.setup.machine import STATE
from btcpay.cli.setup.units import PACKAGED, units

NAME = ".TH BLOCKTILL 1\n.SH NAME\nblocktill \\- Bitcoin payments for small merchants\n"


def helps(command: click.Command, context: click.Context) -> str:
    """The help of a command and of all below it, each as a section."""
    help_text = command.get_help(context).replace("\\", r"\e").replace("-", r"\-")
    lines = "".join(rf"\&{line}" + "\n" for line in help_text.splitlines())
    text = f".SH {context.command_path.upper()}\n.nf\n{lines}.fi\n"
    if not isinstance(command, click.Group):
        return text
    for name in command.list_commands(context):
        subcommand = command.get_command(context, name)
        own_context = click.Context(subcommand, parent=context, info_name=name)
        text += helps(subcommand, own_context)
    return text


def main(root: Path) -> None:
    page = root / "usr/share/man/man1/blocktill.1.gz"
    folder = root / PACKAGED.relative_to("/")
    folder.mkdir(parents=True)
    page.parent.mkdir(parents=True)
    text = (NAME + helps(cli, click.Context(cli, info_name="blocktill"))).encode()
    page.write_bytes(gzip.compress(text, mtime=0))
    program = Path("/opt/blocktill/bin/blocktill")
    env_file = Path("/etc/blocktill.env")
    for name, unit in units(program, env_file, "blocktill", STATE).items():
        (folder / name).write_text(unit)


main(Path(sys.argv[1]))
