"""A file of settings that cron, systemd and a shell read alike: one NAME=value a line.

It takes what systemd (EnvironmentFile=, systemd.exec(5)) and sh read in the same way; what they
would read differently is a mistake that is named, never a guess:

    line   = blank | "#" comment | ["export "] NAME "=" value
    value  = "" | bare | '"' without " $ ` \\ '"' | "'" without ' "'"
    bare   = no blanks, nor any of " ' $ ` \\ ; & | < > ( ) ~

`export ` is taken, though systemd passes such a line over. The last of several wins.
"""

import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from btcpay.errors import SettingsError

VARIABLE = "BTCPAY_ENV_FILE"  # names the file
EMPTY_SAYS_SOMETHING = "BTCPAY_METRICS_BIND"
_PASSED_OVER = re.compile(r"[ \t]*(#([^\\]|\\(?!$))*)?")  # sh ends a comment there, systemd not
_LINE = re.compile(
    r"""[ \t]*(?:export[ ]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=
        (?:"(?P<double>[^"$`\\]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'$`\\;&|<>()~]*))[ \t]*""",
    re.X,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def parse(text: str, name: str) -> dict[str, str]:
    """The variables of a file's text; `name` is what mistakes call the file.

    Raises SettingsError with a line for each mistake, which never repeats the value.
    """
    found, mistakes = {}, []
    for number, line in enumerate(text.split("\n"), start=1):
        match = None if _CONTROL.search(line) else _LINE.fullmatch(line)
        if match:
            found[match["name"]] = match["double"] or match["single"] or match["bare"] or ""
        elif _CONTROL.search(line) or not _PASSED_OVER.fullmatch(line):
            mistakes.append(
                f"{name}, line {number} accepts NAME=value, in double quotes where it has blanks"
                ' or signs, in single quotes with any of " $ ` \\'
            )
    if mistakes:
        raise SettingsError(mistakes)
    return found


def values_of(environ: Mapping[str, str]) -> dict[str, str]:
    """What the file says that BTCPAY_ENV_FILE names; {} when it names none.

    Raises SettingsError.
    """
    file = environ.get(VARIABLE, "")
    if not file.strip():
        return {}
    try:
        return parse(Path(file).read_bytes().decode(), file)
    except OSError as error:
        raise SettingsError([f"{file} cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise SettingsError([f"{file} is not in UTF-8"]) from None


def fill(environ: MutableMapping[str, str]) -> None:
    """Adds what the file says and the environment does not: the environment wins."""
    for name, value in values_of(environ).items():
        is_said = name in environ and name == EMPTY_SAYS_SOMETHING
        if not is_said and not environ.get(name, "").strip():
            environ[name] = value
