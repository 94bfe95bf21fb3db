"""Makes what the program describes itself: the package's man page and systemd units."""

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
    lines = (
        command.get_help(context).replace("\\", r"\e").replace("-", r"\-").splitlines()
    )
    text = "".join(rf"\&{line}" + "\n" for line in lines)
    text = f".SH {context.command_path.upper()}\n.nf\n{text}.fi\n"
    for name in (
        command.list_commands(context) if isinstance(command, click.Group) else ()
    ):
        below = command.get_command(context, name)
        text += helps(below, click.Context(below, parent=context, info_name=name))
    return text


def main(root: Path) -> None:
    page = root / "usr/share/man/man1/blocktill.1.gz"
    folder = root / PACKAGED.relative_to("/")
    folder.mkdir(parents=True)
    page.parent.mkdir(parents=True)
    text = (NAME + helps(cli, click.Context(cli, info_name="blocktill"))).encode()
    page.write_bytes(gzip.compress(text, mtime=0))
    page.with_name("blocktill.1.gz").symlink_to(page.name)
    command, env = Path("/opt/blocktill/bin/blocktill"), Path("/etc/blocktill.env")
    for name, unit in units(command, env, "blocktill", STATE).items():
        (folder / name).write_text(unit)


main(Path(sys.argv[1]))
