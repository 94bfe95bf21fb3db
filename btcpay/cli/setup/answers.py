"""What `setup` asks, and takes as options: the settings, the merchant and the account key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from btcpay.cli.context import say
from btcpay.health.doctor.settings import masked
from btcpay.merchants.account import SCRIPT_TYPES, Account, derive, parse_account
from btcpay.merchants.merchants import require_name
from btcpay.settings.settings import OF_FILES
from btcpay.setup.questions import QUESTIONS, Question, answered, default_of
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network

Answers = dict[str, str]


@dataclass(frozen=True)
class Talk:
    """The options that were `given`, and whether the rest is asked."""

    given: Mapping[str, Any]
    asks: bool

    def settings(self, present: Mapping[str, str], state: Path) -> Answers:
        """All that the file will say. Ends with status 2 for what is missing or wrong."""
        answers, missing = dict(present), list[str]()
        for question in QUESTIONS:
            name, text = question.variable, self.given[question.name]
            if text is None and present.get(OF_FILES.get(name, ""), ""):
                continue
            default = default_of(question, answers, present, state)
            if text is None and self.asks and question.text:
                answers[name] = self._asked(question, default, answers)
            elif text is None and default is None:
                missing.append(question.option)
                answers[name] = "regtest" if question.name == "network" else "http://127.0.0.1"
            else:
                answers[name] = self._checked(
                    question, text if text is not None else default, answers
                )
        if missing:
            refuse(f"{' and '.join(missing)} must be given, since nobody can be asked")
        return {name: text for name, text in answers.items() if text}

    def _checked(self, question: Question, text: str | None, answers: Answers) -> str:
        try:
            return answered(question, text or "", answers)
        except ValueError as error:
            refuse(f"{question.option}: {error}")

    def _asked(self, question: Question, default: str | None, answers: Answers) -> str:
        shown = f" [{masked(default) or 'none'}]" if default is not None else ""

        def accepted(text: str) -> str:
            try:
                return answered(question, text, answers)
            except ValueError as error:
                raise click.UsageError(str(error)) from None

        return str(_prompt(question.text + shown, accepted, default))

    def merchant(self, network: Network) -> tuple[str, Account]:
        """Name and account key, whose first addresses were compared."""
        name, key = self.given["merchant"], self.given["xpub"]
        missing = [f"--{n}" for n in ("merchant", "xpub") if self.given[n] is None]
        if missing and not self.asks:
            refuse(f"{' and '.join(missing)} must be given, since there is no merchant yet")
        if name is None:
            name = _prompt("Merchant's name (your shop's)", _named, None)
        _named(name)
        while True:
            account = self._account(key, network)
            first = [derive(account.text, account.script_type, n, network) for n in range(3)]
            say("The first three receiving addresses; compare them with the wallet:")
            for address in first:
                say(f"  {address}")
            if not self.asks or click.confirm("Are they the wallet's own?", err=True):
                return name, account
            key = None

    def _account(self, key: str | None, network: Network) -> Account:
        if key is not None:
            return parse_account(key, network, self.given["script"])
        say("Account key (extended PUBLIC key: xpub, zpub, tpub, vpub ...) of a wallet's account.")
        say("Never private keys or seed words: nothing here has a use for them.")
        text = _prompt("Account key", lambda text: _account_text(text, network), None)
        script = self.given["script"]
        if script is None and text[:4] in ("xpub", "tpub"):
            kinds = click.Choice(SCRIPT_TYPES)
            script = click.prompt("Kind of addresses", "p2wpkh", type=kinds, err=True)
        return parse_account(text, network, script)


def _prompt(text: str, accepted: Callable[[str], Any], default: str | None) -> Any:
    try:
        return click.prompt(text, default, value_proc=accepted, show_default=False, err=True)
    except click.Abort:
        say("")
        raise CommandError("no answer came; what was made stays, and setup may run again") from None


def _named(text: str) -> str:
    try:
        require_name(text)
    except CommandError as error:
        raise click.UsageError(str(error)) from None
    return text.strip()


def _account_text(text: str, network: Network) -> str:
    try:
        return parse_account(text.strip(), network).text
    except CommandError as error:
        raise click.UsageError(str(error)) from None


def refuse(message: str) -> NoReturn:
    raise click.UsageError(message)
