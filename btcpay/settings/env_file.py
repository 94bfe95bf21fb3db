"""Reads settings files of NAME=value lines that cron, systemd and a shell read alike.

python-dotenv cannot be used. It accepts `A = x`, `A=x y` and escapes in quotes, which
systemd (EnvironmentFile=, systemd.exec(5)) and sh read differently. Here they are
errors. `export ` is accepted, though systemd ignores such a line. If two lines have the
same name, the last one counts.
"""

import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from btcpay.values.errors import SettingsError

VARIABLE = "BLOCKTILL_ENV_FILE"  # the variable with the path of the settings file
# the suffix of a variable that has the path of a secret's file
OF_A_FILE = "_FILE"
EMPTY_HAS_MEANING = "BLOCKTILL_METRICS_BIND"  # an empty value is not the default
ACCEPTED = (
    "a line is NAME=value, without blanks around =; a value with blanks or any of ; & | < > ( ) ~ '"
    ' goes in double quotes, one with " $ ` or a backslash in single quotes, with nothing after it;'
    " a comment does not end with a backslash; control characters are not allowed"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LINE = re.compile(
    r"""[ \t]*(?:(?:export[ ]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=
        (?:"(?P<double>[^"$`\\]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'$`\\;&|<>()~]*))[ \t]*
        |\#([^\\]|\\(?!$))*)?  # sh ends a comment at the end of its line, systemd not always
    """,
    re.X,
)


def parse(text: str, name: str) -> dict[str, str]:
    """Returns the variables in the text of a settings file.

    Raises SettingsError if a line is invalid. Its message names the file (`name`) and
    the number of every invalid line, and never contains a value.
    """
    variables = {}
    invalid_lines = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        match = _LINE.fullmatch(line)
        if match is None or _CONTROL.search(line):
            invalid_lines.append(str(number))
        elif match["name"]:
            # At most one of the three ways to write a value is in a line.
            value = match["double"] or match["single"] or match["bare"]
            variables[match["name"]] = value or ""
    mistakes = []
    if "\r\n" in text:
        mistakes.append(f"{name} has Windows line endings (CRLF)")
    if invalid_lines:
        mistakes.append(f"{name}, line {', '.join(invalid_lines)}: {ACCEPTED}")
    if mistakes:
        raise SettingsError(mistakes)
    return variables


def values_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables in the file that BLOCKTILL_ENV_FILE names.

    Returns {} if that variable is not set. Raises SettingsError if the file cannot be
    read, or has an invalid line.
    """
    file = environ.get(VARIABLE, "")
    if file.strip():
        return parse(text_of(file, file), file)
    return {}


def text_of(path: str, name: str) -> str:
    """Returns the contents of a text file.

    Raises SettingsError if the file cannot be read, or is not in UTF-8. Its message
    calls the file `name`, and contains nothing from the file.
    """
    try:
        return Path(path).read_bytes().decode()
    except OSError as error:
        raise SettingsError([f"{name} cannot be read: {error.strerror}"]) from None
    except ValueError:  # not UTF-8, or a path with a null byte
        raise SettingsError([f"{name} is not in UTF-8"]) from None


def fill(environ: MutableMapping[str, str]) -> None:
    """Adds the variables of the settings file that the environment does not set.

    NAME and NAME_FILE belong to the same setting: if the environment sets one of them,
    the file's values of both are ignored. Raises SettingsError if the file cannot be
    read, or has an invalid line.
    """
    # The file may have both NAME and NAME_FILE, so what it adds must not count as set.
    environ_before = dict(environ)
    for name, value in values_of(environ).items():
        stem = name.removesuffix(OF_A_FILE)
        names_of_setting = (stem, stem + OF_A_FILE)
        is_set = any(environ_before.get(key, "").strip() for key in names_of_setting)
        is_empty_on_purpose = name == EMPTY_HAS_MEANING and name in environ_before
        if not is_set and not is_empty_on_purpose:
            environ[name] = value


def changed_text(text: str, changes: Mapping[str, str]) -> str:
    """Returns the text of a settings file with changed variables.

    `changes` has the new values by the variables' names. The value "" removes a variable.
    Raises SettingsError for a value that a line of the file cannot contain, such as a
    line break.
    """
    for name, value in changes.items():
        text = _with_variable(text, name, value)
    return text


def _with_variable(text: str, name: str, value: str) -> str:
    """Returns the text of a settings file with one changed variable, or without it."""
    lines = text.split("\n")  # `parse` splits lines only here
    if not lines[-1]:
        lines.pop()
    is_line_of_variable = re.compile(rf"[ \t]*(export +)?{name}=").match
    indexes = [index for index, line in enumerate(lines) if is_line_of_variable(line)]
    if not value:
        lines = [line for line in lines if not is_line_of_variable(line)]
    elif indexes:
        # the last of several lines is the one that counts
        lines[indexes[-1]] = _line(name, value)
    else:
        lines.append(_line(name, value))
    return "".join(f"{line}\n" for line in lines)


def _line(name: str, value: str) -> str:
    """Returns a line NAME=value, with quotes if they are needed.

    Raises SettingsError if no line can contain the value.
    """
    for quote in ("", '"', "'"):
        line = f"{name}={quote}{value}{quote}"
        try:
            if "\n" not in line and parse(line, "") == {name: value}:
                return line
        except SettingsError:
            continue
    raise SettingsError([f"{name}: a file of settings cannot hold this value"])
