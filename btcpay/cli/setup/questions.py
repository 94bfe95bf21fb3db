"""The questions of `setup` about settings, and the validation of their answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from btcpay.settings.settings import PREFIX, read
from btcpay.values.errors import SettingsError

NONE = "none"  # typed to leave a setting unset
SQLITE = "sqlite:///"
Answers = dict[str, str]


class Question(NamedTuple):
    """A setting that `setup` can set.

    - `name`: the name of the setting and of the option.
    - `text`: the prompt, and the help of the option.
    - `usual`: the default; None if an answer is required.
    - `is_asked`: False if there is only the option, but no prompt.
    - `is_written`: True if the setting is written to the settings file even if the
      answer is the default.
    """

    name: str
    text: str
    usual: str | None = ""
    is_asked: bool = True
    is_written: bool = False

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


QUESTIONS = (
    Question("network", "Network (testnet4 to try, mainnet for real money)", None),
    Question("base_url", "Public address, such as https://pay.example.com", None),
    Question("database_url", "Database"),
    Question(
        "proxy",
        "Proxy for explorers and tickers, such as socks5h://127.0.0.1:9050 for Tor.",
        is_asked=False,
    ),
    Question(
        "trusted_proxies",
        "How many reverse proxies are in front. [1 for https, else 0]",
        "0",
        is_asked=False,
    ),
    Question(
        "email_retention_days",
        "Days until customers' addresses are erased (0: never).",
        "0",
        is_asked=False,
    ),
    Question(
        "smtp_url",
        "Mail server, such as smtps://user:password@mail.example.com.",
        is_asked=False,
    ),
    Question(
        "mail_from", "Sender of that mail, such as shop@example.com.", is_asked=False
    ),
    Question(
        "merchant_pages",
        "The merchant's pages in a browser: on or off. [on]",
        "on",
        is_asked=False,
        is_written=True,
    ),
    Question(
        "peers", "Nodes to read blocks from, such as 10.0.0.5:8333.", is_asked=False
    ),
    Question("bind", "Where the service listens, as host:port.", is_asked=False),
)


def default_of(
    question: Question,
    answers: Mapping[str, str],
    present: Mapping[str, str],
    state: Path,
) -> str | None:
    """Returns the answer that `setup` suggests; None if there is none.

    It is the setting's value in the settings file, whose variables are `present`, else
    the default. Two defaults depend on `answers`, the answers to earlier questions:

    - The default of `database_url` is an SQLite file in the folder `state`, named after
      the network. If the present value is an SQLite file of another network, this default
      is suggested too.
    - The default of `trusted_proxies` depends on the base URL.
    """
    value = present.get(question.variable, "").strip()
    if question.name == "database_url":
        network = answers["BLOCKTILL_NETWORK"]
        # A database belongs to one network, so another network needs a new file.
        has_other_network = network != present.get("BLOCKTILL_NETWORK")
        if not value or (has_other_network and value.startswith(SQLITE)):
            return f"{SQLITE}{state}/{network}.db"
    if question.name == "trusted_proxies" and not value:
        return _default_proxies(answers["BLOCKTILL_BASE_URL"])
    return value or question.usual


def _default_proxies(base_url: str) -> str:
    """Returns the number of reverse proxies: one for https, since the service has no TLS."""
    if urlsplit(base_url).scheme == "https":
        return "1"
    return "0"


def validate_answer(question: Question, text: str, answers: Mapping[str, str]) -> str:
    """Returns the setting's text; "" means that it is not set.

    Raises ValueError, with the reason, if the text is invalid.
    """
    text = text.strip()
    if text == NONE:
        text = ""
    if not text and question.usual is None:
        raise ValueError(f"{question.option} is needed")
    is_sqlite = question.name == "database_url" and text.startswith(SQLITE)
    if is_sqlite and not text.removeprefix(SQLITE).startswith("/"):
        raise ValueError(
            "an absolute path: sqlite:// and then /path, with four slashes in all"
        )
    try:
        read({**answers, question.variable: text})
    except SettingsError as error:
        # Mistakes in other settings are reported when those are validated.
        beginnings = (f"{question.variable} ", f"{question.variable}_FILE")
        for mistake in error.mistakes:
            if mistake.startswith(beginnings):
                raise ValueError(mistake) from None
    return text


def worth_writing(answers: Answers, present: Mapping[str, str]) -> Answers:
    """Returns the answers that must be written to the settings file, by variable.

    An answer is written in these cases:

    - The file has the variable with another value.
    - The file lacks the variable, and the answer is not the default.
    - The file lacks the variable, and the question `is_written`.
    """
    changes = {}
    for question in QUESTIONS:
        text = answers.get(question.variable, "")
        text_if_missing = question.usual or ""  # what a missing variable means
        if question.is_written:
            text_if_missing = ""
        if text != present.get(question.variable, text_if_missing):
            changes[question.variable] = text
    return changes
