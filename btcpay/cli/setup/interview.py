"""Reads the answers that `setup` needs from its options, or prompts for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.cli.merchant.account_text import choose_account, show_reading
from btcpay.cli.merchant.merchant import show_first_addresses
from btcpay.cli.output import say
from btcpay.cli.setup.questions import (
    QUESTIONS,
    Answers,
    Question,
    default_of,
    validate_answer,
)
from btcpay.merchants.account import SCRIPT_TYPES
from btcpay.merchants.merchants import checked_name
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.settings.secrets import without_secrets
from btcpay.settings.settings import OF_FILES
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS, Network

OWN_ADDRESS = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Interview:
    """The options of `setup`, and the prompts for those that are missing.

    `options` has None for an option that was not given. If `asks` is False, nothing is
    prompted for.
    """

    options: Mapping[str, Any]
    asks: bool

    def settings(self, present: Mapping[str, str], state: Path) -> Answers:
        """Returns the variables for the settings file; those with an empty value are left out.

        `present` has the variables that the file has now. `state` is the folder of a
        new database. Raises UsageError for options that are missing or invalid.
        """
        questions = self._questions(present)
        self._require_settings(questions, present)
        answers = dict(present)
        for question in questions:
            from_file = present.get(OF_FILES.get(question.variable, ""), "")
            if from_file and self.options[question.name] is None:
                continue  # the settings file names another file, which has the value
            default = default_of(question, answers, present, state)
            answers[question.variable] = self._answer(question, default, answers)
        return {name: text for name, text in answers.items() if text}

    def _questions(self, present: Mapping[str, str]) -> Sequence[Question]:
        """Returns the questions about settings.

        With --yes on a network of play money, the default of `base_url` is this
        machine's address.
        """
        network = self.options["network"]
        if not network:
            network = present.get("BLOCKTILL_NETWORK", "").strip()
        is_play_money = network in NETWORKS and not NETWORKS[network].main_keys
        if not (self.options["yes"] and is_play_money):
            return QUESTIONS
        questions = []
        for question in QUESTIONS:
            if question.name == "base_url":
                question = question._replace(usual=OWN_ADDRESS)
            questions.append(question)
        return questions

    def _require_settings(
        self, questions: Sequence[Question], present: Mapping[str, str]
    ) -> None:
        missing = []
        for question in questions:
            is_given = self.options[question.name] is not None
            is_present = bool(present.get(question.variable, "").strip())
            if question.usual is None and not is_given and not is_present:
                missing.append(question.option)
        reason = "there is no terminal to ask"
        if self.options["yes"]:
            reason = "--yes asks nothing"
        self._require(missing, reason)

    def _answer(self, question: Question, default: str | None, answers: Answers) -> str:
        text = self.options[question.name]
        validate = partial(validate_answer, question, answers=answers)
        if text is None and self.asks and question.is_asked:
            prompt = question.text
            if default is not None:
                prompt += f" [{without_secrets(question.variable, default) or 'none'}]"
            return _ask(prompt, validate, default)
        if text is None:
            text = default or ""
        try:
            return validate(text)
        except ValueError as error:
            raise click.UsageError(f"{question.option}: {error}") from None

    def merchant(self, network: Network) -> tuple[str, Descriptor]:
        """Returns the merchant's name and account, after the user has compared addresses.

        Raises UsageError if an option is missing, and CommandError if a value is
        invalid or the addresses differ from the wallet's.
        """
        options = self.options
        missing = [f"--{n}" for n in ("merchant", "xpub") if options[n] is None]
        self._require(missing, "there is no merchant yet")
        name = options["merchant"]
        if name is None:
            name = _ask("Merchant's name (your shop's)", checked_name)
        else:
            name = checked_name(name)
        key = options["xpub"]
        script = options["script"]
        if key is None:
            key = _ask_key(network)
            if script is None and _is_assumed(key, network):
                script = _ask_script()
        text, chosen = choose_account(
            key, network, script, options["choose"], self.asks
        )
        account = chosen.descriptor
        show_reading(text, chosen)
        show_first_addresses(account, network)
        if self.asks and not click.confirm("Does the wallet show the same?", err=True):
            raise CommandError("nothing was made")
        return name, account

    def _require(self, missing: list[str], reason: str) -> None:
        if missing and not self.asks:
            names = " and ".join(missing)
            raise click.UsageError(f"{names} must be given, since {reason}")


def _ask_key(network: Network) -> str:
    def validate(text: str) -> str:
        key = text.strip()
        read_wallet_text(key, network)
        return key

    say(
        "Account key (extended PUBLIC key: xpub, zpub, tpub, vpub ...) or descriptor, in one"
    )
    say("line. A wallet's file is read by --xpub - instead.")
    say("Never private keys or seed words: nothing here has a use for them.")
    return _ask("Account key", validate)


def _is_assumed(key: str, network: Network) -> bool:
    """True if the key does not say its kind of addresses."""
    accounts = read_wallet_text(key, network).accounts
    return any(account.is_assumed for account in accounts)


def _ask_script() -> str:
    kinds = click.Choice(SCRIPT_TYPES)
    return str(click.prompt("Kind of addresses", "p2wpkh", type=kinds, err=True))


def _ask(
    prompt: str, validate: Callable[[str], str], default: str | None = None
) -> str:
    """Prompts until `validate` accepts the text, and returns the value that it returns."""

    def value_of(text: str) -> str:
        try:
            return validate(text)
        except (ValueError, CommandError) as error:
            raise click.UsageError(str(error)) from None

    answer = click.prompt(
        prompt, default, value_proc=value_of, show_default=False, err=True
    )
    return str(answer)
