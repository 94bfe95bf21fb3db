"""The questions of `btcpay setup`: each asks for a setting, and is an option too."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from btcpay.settings.settings import PREFIX, read
from btcpay.values.errors import SettingsError

NONE = "none"  # typed for a setting that is to stay unset
SQLITE = "sqlite:///"


class Question(NamedTuple):
    """A setting. `usual`: its default; None must be answered. Not `asked`: only an option."""

    name: str
    text: str
    usual: str | None = ""
    asked: bool = True

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
    Question("proxy", "Proxy for explorers and tickers, such as socks5h://127.0.0.1:9050 for Tor"),
    Question("trusted_proxies", "How many reverse proxies are in front (nginx, Caddy)", "0"),
    Question("email_retention_days", "Days until customers' addresses are erased (0: never)", "0"),
    Question("smtp_url", "Mail server, such as smtps://user:password@mail.example.com (or none)"),
    Question("mail_from", "Sender of that mail, such as shop@example.com (none: no mail)"),
    Question("merchant_pages", "The merchant's pages in a browser (on or off)", "off"),
    Question("peers", "Nodes to read blocks from, such as 10.0.0.5:8333.", asked=False),
    Question("bind", "Where the service listens, as host:port.", asked=False),
)


def default_of(
    question: Question, answers: Mapping[str, str], present: Mapping[str, str], state: Path
) -> str | None:
    """The present value, or the default that follows from these `answers`; None for neither."""
    now = present.get(question.variable, "").strip()
    if question.name == "database_url":  # it belongs to one network
        moved = answers["BTCPAY_NETWORK"] != present.get("BTCPAY_NETWORK")
        if not now or (moved and now.startswith(SQLITE)):
            return f"{SQLITE}{state}/{answers['BTCPAY_NETWORK']}.db"
    if question.name == "trusted_proxies" and not now:  # the service itself speaks no TLS
        return "1" if urlsplit(answers["BTCPAY_BASE_URL"]).scheme == "https" else "0"
    return now or question.usual


def answered(question: Question, text: str, answers: Mapping[str, str]) -> str:
    """The setting's text, "" for none. Raises ValueError, which says what is accepted."""
    text = "" if text.strip() == NONE else text.strip()
    if not text and question.usual is None:
        raise ValueError(f"{question.option} is needed")
    if question.name == "database_url" and text.startswith(SQLITE) and text[10:11] != "/":
        raise ValueError("an absolute path: sqlite:// and then /path, with four slashes in all")
    try:
        read({**answers, question.variable: text})
    except SettingsError as error:
        for mistake in error.mistakes:
            if mistake.startswith((f"{question.variable} ", f"{question.variable}_FILE")):
                raise ValueError(mistake) from None
    return text


def folder_of(database_url: str) -> Path | None:
    """The folder of a SQLite database; None for a database on a server."""
    return Path(database_url[len(SQLITE) :]).parent if database_url.startswith(SQLITE) else None
