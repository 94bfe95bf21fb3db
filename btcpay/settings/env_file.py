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

from btcpay.values.errors import SettingsError

VARIABLE = "BTCPAY_ENV_FILE"  # names the file
OF_A_FILE = "_FILE"  # behind a variable's name: the file that has its value
EMPTY_SAYS_SOMETHING = "BTCPAY_METRICS_BIND"
_PASSED_OVER = re.compile(r"[ \t]*(#([^\\]|\\(?!$))*)?")  # sh ends a comment there, systemd not
_LINE = re.compile(
    r"""[ \t]*(?:export[ ]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=
        (?:"(?P<double>[^"$`\\]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'$`\\;&|<>()~]*))[ \t]*""",
    re.X,
)
_NOT_CLOSED = "the quote is not closed"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def parse(text: str, name: str) -> dict[str, str]:
    """The variables of a file's text; `name` is what mistakes call the file.

    Raises SettingsError with a line for each mistake, which never repeats the value.
    """
    found, windows, mistakes = {}, list[str](), list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        match = None if _CONTROL.search(line) else _LINE.fullmatch(line)
        if match:
            found[match["name"]] = match["double"] or match["single"] or match["bare"] or ""
        elif line.endswith("\r"):
            windows = windows or [f"{name}, line {number}: the file has Windows line ends (CRLF)"]
        elif _CONTROL.search(line) or not _PASSED_OVER.fullmatch(line):
            mistakes.append(f"{name}, line {number}: {_what_is_wrong(line)}")
    mistakes = windows + mistakes
    if mistakes:
        raise SettingsError(mistakes)
    return found


def _what_is_wrong(line: str) -> str:
    """Of a line that is no setting; never repeats the value."""
    if _CONTROL.search(line):
        return "it has a control character"
    if line.lstrip().startswith("#"):
        return "a comment must not end with a backslash"
    name, equals, value = line.partition("=")
    if not equals:
        return "= is missing: NAME=value"
    name = re.sub(r"^[ \t]*(export +)?", "", name)
    if name != name.rstrip() or re.match(r"[ \t]+\S", value):
        return "no blank before or after ="
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return "a name has letters, digits and _ alone, and begins with no digit"
    return _wrong_with(value)


def _wrong_with(value: str) -> str:
    quote = value[0] if value[0] in "\"'" else ""
    inner, closing, rest = value[1:].partition(quote) if quote else (value, "", "")
    if quote != "'" and (sign := re.search(r"[$`]", inner)):
        return f"{sign[0]} is not replaced: write the value out, or put it in single quotes"
    if quote != "'" and "\\" in inner:
        return "a value with a backslash stands in single quotes"
    if quote:
        return "nothing may stand behind the closing quote" if closing else _NOT_CLOSED
    if re.search("[\"']", inner):
        return "quotes stand around the whole value"
    return "a value with blanks, or one of ; & | < > ( ) ~, stands in double quotes"


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
    """Adds what the file says and the environment does not: the environment wins.

    A variable counts as said, too, when another one names the file that has its value.
    """
    before = dict(environ)
    for name, value in values_of(environ).items():
        stem = name.removesuffix(OF_A_FILE)
        is_said = name in environ and name == EMPTY_SAYS_SOMETHING
        if not is_said and not any(before.get(one, "").strip() for one in (stem, stem + OF_A_FILE)):
            environ[name] = value
