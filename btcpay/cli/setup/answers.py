"""The questions of `setup`, asked or answered by options: settings, merchant, account key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.cli.context import say
from btcpay.cli.merchant.merchant import show_first_addresses
from btcpay.merchants.account import SCRIPT_TYPES, parse_account
from btcpay.merchants.merchants import checked_name
from btcpay.settings.secrets import shown
from btcpay.settings.settings import OF_FILES, PREFIX, read
from btcpay.values.errors import CommandError, SettingsError
from btcpay.values.networks import NETWORKS, Network

OWN_ADDRESS = "http://127.0.0.1:8000"
NONE = "none"  # typed for a setting that is to stay unset
SQLITE = "sqlite:///"
Answers = dict[str, str]


class Question(NamedTuple):
    """A setting. `usual`: the answer if none is given; None if one must be. Not `asked`: only an
    option. `is_written`: stands in the file even if it is the usual one.
    """

    name: str
    text: str
    usual: str | None = ""
    asked: bool = True
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
        "Proxy for explorers and tickers, such as socks5h://127.0.0.1:9050 for Tor",
    ),
    Question(
        "trusted_proxies", "How many reverse proxies are in front (nginx, Caddy)", "0"
    ),
    Question(
        "email_retention_days",
        "Days until customers' addresses are erased (0: never)",
        "0",
    ),
    Question(
        "smtp_url",
        "Mail server, such as smtps://user:password@mail.example.com (or none)",
    ),
    Question(
        "mail_from", "Sender of that mail, such as shop@example.com (none: no mail)"
    ),
    Question(
        "merchant_pages",
        "The merchant's pages in a browser (on or off)",
        "on",
        is_written=True,
    ),
    Question("peers", "Nodes to read blocks from, such as 10.0.0.5:8333.", asked=False),
    Question("bind", "Where the service listens, as host:port.", asked=False),
)


def default_of(
    question: Question,
    answers: Mapping[str, str],
    present: Mapping[str, str],
    state: Path,
) -> str | None:
    """The present value, or the default that follows from these `answers`; None for neither."""
    now = present.get(question.variable, "").strip()
    if question.name == "database_url":  # it belongs to one network
        moved = answers["BLOCKTILL_NETWORK"] != present.get("BLOCKTILL_NETWORK")
        if not now or (moved and now.startswith(SQLITE)):
            return f"{SQLITE}{state}/{answers['BLOCKTILL_NETWORK']}.db"
    if (
        question.name == "trusted_proxies" and not now
    ):  # the service itself speaks no TLS
        if urlsplit(answers["BLOCKTILL_BASE_URL"]).scheme == "https":
            return "1"
        return "0"
    return now or question.usual


def answered(question: Question, text: str, answers: Mapping[str, str]) -> str:
    """The setting's text, "" for none. Raises ValueError, which says what is accepted."""
    text = "" if text.strip() == NONE else text.strip()
    if not text and question.usual is None:
        raise ValueError(f"{question.option} is needed")
    if (
        question.name == "database_url"
        and text.startswith(SQLITE)
        and text[10:11] != "/"
    ):
        raise ValueError(
            "an absolute path: sqlite:// and then /path, with four slashes in all"
        )
    try:
        read({**answers, question.variable: text})
    except SettingsError as error:
        for mistake in error.mistakes:
            if mistake.startswith(
                (f"{question.variable} ", f"{question.variable}_FILE")
            ):
                raise ValueError(mistake) from None
    return text


@dataclass(frozen=True)
class Talk:
    """The options that were `given`. `asks`: the others are asked for."""

    given: Mapping[str, Any]
    asks: bool

    def settings(self, present: Mapping[str, str], state: Path) -> Answers:
        """The variables of the file. Refuses options that are missing or wrong."""
        questions = self._questions(present)
        missing = [
            question.option
            for question in questions
            if question.usual is None and self.given[question.name] is None
            if not present.get(question.variable, "").strip()
        ]
        says_yes = self.given["yes"]
        self._require(
            missing, "--yes asks nothing" if says_yes else "there is no terminal to ask"
        )
        answers = dict(present)
        for question in questions:
            by_file = present.get(OF_FILES.get(question.variable, ""), "")
            if self.given[question.name] is not None or not by_file:
                default = default_of(question, answers, present, state)
                answers[question.variable] = self._answer(question, default, answers)
        return {name: text for name, text in answers.items() if text}

    def _questions(self, present: Mapping[str, str]) -> Sequence[Question]:
        """With --yes a shop of play money, if nothing else is said, is for this machine alone."""
        network = self.given["network"] or present.get("BLOCKTILL_NETWORK", "").strip()
        is_play_money = network in NETWORKS and not NETWORKS[network].main_keys
        if not (self.given["yes"] and is_play_money):
            return QUESTIONS
        usual = {"base_url": OWN_ADDRESS}
        return [one._replace(usual=usual.get(one.name, one.usual)) for one in QUESTIONS]

    def _answer(self, question: Question, default: str | None, answers: Answers) -> str:
        given = self.given[question.name]
        accepted = partial(answered, question, answers=answers)
        if given is None and self.asks and question.asked:
            text = question.text
            if default is not None:
                text += f" [{shown(question.variable, default) or 'none'}]"
            return _asked(text, accepted, default)
        try:
            return accepted((default or "") if given is None else given)
        except ValueError as error:
            raise click.UsageError(f"{question.option}: {error}") from None

    def merchant(self, network: Network) -> tuple[str, Descriptor]:
        """Name and account key, once their owner has compared the first addresses."""
        name = self.given["merchant"]
        key = self.given["xpub"]
        missing = [f"--{n}" for n in ("merchant", "xpub") if self.given[n] is None]
        self._require(missing, "there is no merchant yet")
        asked = "Merchant's name (your shop's)"
        name = _asked(asked, checked_name) if name is None else checked_name(name)
        script = self.given["script"]
        if key is None:
            say(
                "Account key (extended PUBLIC key: xpub, zpub, tpub, vpub ...) or descriptor."
            )
            say("Never private keys or seed words: nothing here has a use for them.")
            key = _asked(
                "Account key", lambda text: _accepted_key(text.strip(), network)
            )
            if script is None and key[:4] in ("xpub", "tpub"):
                kinds = click.Choice(SCRIPT_TYPES)
                script = click.prompt(
                    "Kind of addresses", "p2wpkh", type=kinds, err=True
                )
        account = parse_account(key, network, script)
        show_first_addresses(account, network)
        if self.asks and not click.confirm("Does the wallet show the same?", err=True):
            raise CommandError("nothing was made")
        return name, account

    def _require(self, missing: list[str], why: str) -> None:
        if missing and not self.asks:
            raise click.UsageError(
                f"{' and '.join(missing)} must be given, since {why}"
            )


def _accepted_key(text: str, network: Network) -> str:
    parse_account(text, network)
    return text


def _asked(
    text: str, accepted: Callable[[str], str], default: str | None = None
) -> str:
    def value_of(typed: str) -> str:
        try:
            return accepted(typed)
        except (ValueError, CommandError) as error:
            raise click.UsageError(str(error)) from None

    return str(
        click.prompt(text, default, value_proc=value_of, show_default=False, err=True)
    )


def worth_writing(answers: Answers, present: Mapping[str, str]) -> Answers:
    """The answers that differ from the file, or from the default where it says nothing."""
    return {
        question.variable: text
        for question in QUESTIONS
        if (text := answers.get(question.variable, ""))
        != present.get(
            question.variable, "" if question.is_written else question.usual or ""
        )
    }
