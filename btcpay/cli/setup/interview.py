"""Reads the answers that `setup` needs from its options, or prompts for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from btcpay.cli.setup.questions import (
    QUESTIONS,
    Answers,
    Question,
    default_of,
    validate_answer,
)
from btcpay.settings.secrets import without_secrets
from btcpay.settings.settings import OF_FILES
from btcpay.values.networks import NETWORKS

OWN_ADDRESS = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Interview:
    """The options of `setup`, and the prompts for those that are missing.

    `options` has None for an option that is not given. If `asks` is False, there are no
    prompts.
    """

    options: Mapping[str, Any]
    asks: bool

    def settings(self, present: Mapping[str, str], state: Path) -> Answers:
        """Returns the variables for the settings file, without those whose value is empty.

        The values come from the options, from prompts, from `present` (the variables
        that the file has now), or are defaults. `state` is the folder in which a new
        database is created. Raises UsageError for missing or invalid options.
        """
        questions = self._questions(present)
        self._require_settings(questions, present)
        answers = dict(present)
        for question in questions:
            # The variable NAME_FILE of a setting names another file, which has the value.
            value_file = present.get(OF_FILES.get(question.variable, ""), "")
            if value_file and self.options[question.name] is None:
                continue
            default = default_of(question, answers, present, state)
            answers[question.variable] = self._answer(question, default, answers)
        return {name: text for name, text in answers.items() if text}

    def _questions(self, present: Mapping[str, str]) -> Sequence[Question]:
        """Returns the questions about settings.

        With --yes on a network of play money, the answer to `base_url` is by default
        the address of this machine.
        """
        network = self.options["network"]
        if not network:
            network = present.get("BLOCKTILL_NETWORK", "").strip()
        is_play_money = network in NETWORKS and not NETWORKS[network].main_keys
        has_usual_address = self.options["yes"] and is_play_money
        if not has_usual_address:
            return QUESTIONS
        questions = []
        for question in QUESTIONS:
            if question.name == "base_url":
                question = question._replace(usual=OWN_ADDRESS)
            questions.append(question)
        return questions

    def _require_settings(
        self,
        questions: Sequence[Question],
        present: Mapping[str, str],
    ) -> None:
        """Raises UsageError if an answer is needed, and nobody can be asked for it."""
        if self.asks:
            return
        missing = []
        for question in questions:
            is_given = self.options[question.name] is not None
            is_present = bool(present.get(question.variable, "").strip())
            if question.usual is None and not is_given and not is_present:
                missing.append(question.option)
        if not missing:
            return
        reason = "there is no terminal to ask"
        if self.options["yes"]:
            reason = "--yes asks nothing"
        names = " and ".join(missing)
        raise click.UsageError(f"{names} must be given, since {reason}")

    def _answer(self, question: Question, default: str | None, answers: Answers) -> str:
        """Returns the answer from the option, else from a prompt, else the default.

        Raises UsageError if the option or the default is invalid.
        """
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


def _ask(
    prompt: str,
    validate: Callable[[str], str],
    default: str | None = None,
) -> str:
    """Prompts until `validate` accepts the text, and returns the value that it returns.

    The default is validated too.
    """

    def value_of(text: str) -> str:
        try:
            return validate(text)
        except ValueError as error:
            # click shows the message and prompts again.
            raise click.UsageError(str(error)) from None

    answer: str = click.prompt(
        prompt,
        default,
        value_proc=value_of,
        show_default=False,
        err=True,
    )
    return answer
