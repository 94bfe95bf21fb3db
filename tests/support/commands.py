"""The commands of a click group, and of the groups within it."""

from collections.abc import Iterator

import click


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Each command with its words, such as `key issue`; a group's own when it is used."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        elif command:
            yield " ".join([*path, name]), command
