"""The questions and options of `setup`: the settings, the merchant and the account key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.cli.context import say
from btcpay.cli.merchant.merchant import show_first_addresses
from btcpay.health.doctor.settings import masked
from btcpay.merchants.account import SCRIPT_TYPES, parse_account
from btcpay.merchants.merchants import require_name
from btcpay.settings.settings import OF_FILES
from btcpay.setup.questions import QUESTIONS, Question, answered, default_of
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network

Answers = dict[str, str]


@dataclass(frozen=True)
class Talk:
    """The options that were `given`. `asks`: the others are asked for."""

    given: Mapping[str, Any]
    asks: bool

    def settings(self, present: Mapping[str, str], state: Path) -> Answers:
        """The variables of the file. Refuses options that are missing or wrong."""
        missing = [
            question.option
            for question in QUESTIONS
            if question.usual is None and self.given[question.name] is None
            if not present.get(question.variable, "").strip()
        ]
        if missing and not self.asks:
            refuse(f"{' and '.join(missing)} must be given, since there is no terminal to ask")
        answers = dict(present)
        for question in QUESTIONS:
            name, text = question.variable, self.given[question.name]
            if text is None and present.get(OF_FILES.get(name, ""), ""):
                continue
            default = default_of(question, answers, present, state)
            if text is None and self.asks and question.asked:
                answers[name] = _asked_setting(question, default, answers)
            else:
                answers[name] = _checked(question, default if text is None else text, answers)
        return {name: text for name, text in answers.items() if text}

    def merchant(self, network: Network) -> tuple[str, Descriptor]:
        """Name and account key, once their owner has compared the first addresses."""
        name, key = self.given["merchant"], self.given["xpub"]
        missing = [f"--{n}" for n in ("merchant", "xpub") if self.given[n] is None]
        if missing and not self.asks:
            refuse(f"{' and '.join(missing)} must be given, since there is no merchant yet")
        name = _asked("Merchant's name (your shop's)", _named) if name is None else _named(name)
        while True:
            account = self._account(key, network)
            show_first_addresses(account, network)
            if not self.asks or click.confirm("Does the wallet show the same?", err=True):
                return name, account
            key = None

    def _account(self, key: str | None, network: Network) -> Descriptor:
        script = self.given["script"]
        if key is None:
            say("Account key (extended PUBLIC key: xpub, zpub, tpub, vpub ...) or descriptor.")
            say("Never private keys or seed words: nothing here has a use for them.")
            key = _asked("Account key", lambda text: _accepted_key(text.strip(), network))
            if script is None and key[:4] in ("xpub", "tpub"):
                kinds = click.Choice(SCRIPT_TYPES)
                script = click.prompt("Kind of addresses", "p2wpkh", type=kinds, err=True)
        return parse_account(key, network, script)


def _accepted_key(text: str, network: Network) -> str:
    parse_account(text, network)
    return text


def _checked(question: Question, text: str | None, answers: Answers) -> str:
    try:
        return answered(question, text or "", answers)
    except ValueError as error:
        refuse(f"{question.option}: {error}")


def _asked_setting(question: Question, default: str | None, answers: Answers) -> str:
    shown = f" [{masked(default) or 'none'}]" if default is not None else ""
    return _asked(question.text + shown, lambda text: answered(question, text, answers), default)


def _asked(text: str, accepted: Callable[[str], str], default: str | None = None) -> str:
    """Asks until the answer is accepted."""

    def value_of(typed: str) -> str:
        try:
            return accepted(typed)
        except (ValueError, CommandError) as error:
            raise click.UsageError(str(error)) from None

    try:
        return str(click.prompt(text, default, value_proc=value_of, show_default=False, err=True))
    except click.Abort:
        say("")
        raise CommandError("no answer came; what was made stays, and setup can run again") from None


def _named(text: str) -> str:
    try:
        require_name(text)
    except CommandError as error:
        refuse(str(error))
    return text.strip()


def refuse(message: str) -> NoReturn:
    raise click.UsageError(message)


def worth_writing(answers: Answers, present: Mapping[str, str]) -> Answers:
    """The answers that differ from the file, or from the default where it says nothing."""
    return {
        question.variable: text
        for question in QUESTIONS
        if (text := answers.get(question.variable, ""))
        != present.get(question.variable, question.usual or "")
    }
