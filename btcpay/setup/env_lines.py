"""A file of settings, changed line by line: every other line stays as it is."""

import re
from collections.abc import Mapping

from btcpay.settings.env_file import parse
from btcpay.values.errors import SettingsError


def changed(text: str, changes: Mapping[str, str]) -> str:
    """The text with these values; "" removes a variable. Raises SettingsError."""
    for name, value in changes.items():
        lines = text.split("\n")  # the only end of a line to `parse`
        lines = lines if lines[-1] else lines[:-1]
        at = [n for n, line in enumerate(lines) if re.match(rf"[ \t]*(export +)?{name}=", line)]
        if value and at:
            lines[at[-1]] = _line(name, value)  # the last of several wins
        elif value:
            lines.append(_line(name, value))
        else:
            lines = [line for n, line in enumerate(lines) if n not in at]
        text = "".join(f"{line}\n" for line in lines)
    return text


def _line(name: str, value: str) -> str:
    for quote in ("", '"', "'"):
        line = f"{name}={quote}{value}{quote}"
        try:
            if "\n" not in line and parse(line, "") == {name: value}:
                return line
        except SettingsError:
            continue
    raise SettingsError([f"{name}: a file of settings cannot hold this value"])
