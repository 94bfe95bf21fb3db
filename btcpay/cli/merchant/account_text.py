"""Reads the account of a merchant from the command line or from standard input."""

import io
import re
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from btcpay.cli.output import say
from btcpay.merchants.secret import holds_secret
from btcpay.merchants.wallet_text.accounts import (
    WalletAccount,
    WalletText,
)
from btcpay.merchants.wallet_text.clean import MAX_CHARS
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network

KEY_NAMES = ("--xpub", "--descriptor", "xpub")  # one option with two names
# A line at the end of standard input that is the answer to a later prompt, and no account.
_ANSWER = re.compile("y|yes|n|no|[0-9]{1,7}", re.IGNORECASE)


def _single_key(_context: Any, _option: Any, words: tuple[str, ...]) -> str | None:
    if len(words) > 1:
        raise click.UsageError("give one key: either --xpub or --descriptor, once")
    if words:
        return words[0].encode(errors="replace").decode()
    return None


key_option = partial(
    click.option, *KEY_NAMES, metavar="TEXT", multiple=True, callback=_single_key
)
choose_option = partial(
    click.option,
    "--choose",
    metavar="NAME",
    help="Which account of the text, if it holds several.",
)


def key_of(xpub: str, others: list[str]) -> str:
    """Returns the text that describes the account: `xpub`, or standard input for "-".

    `others` are further words on the command line. If `xpub` and `others` together look
    like a secret, such as a seed phrase, returns all of these words: the parser refuses
    a secret with a better message. Otherwise raises UsageError if there are any
    `others`. Raises CommandError if the text is empty.
    """
    text = " ".join([xpub, *others])
    if others and not holds_secret(text):
        raise click.UsageError(
            "there are more words than MERCHANT and KEY: quotes may be missing"
        )
    key = text.strip()
    if key == "-":
        key = _read_standard_input()
    if not key:
        raise CommandError("no key was given")
    return key


def _read_standard_input() -> str:
    """Returns the text of standard input, without the answers in its last lines.

    The answers can be read from standard input afterwards. Raises CommandError if the
    input is no text.
    """
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        say("Paste what the wallet exports (PUBLIC), then press Enter and Ctrl-D:")
    try:
        text = sys.stdin.read(MAX_CHARS + 1)
    except UnicodeDecodeError:
        raise CommandError(
            "standard input is no text in UTF-8: export the account as text"
        ) from None
    if is_terminal:
        return text.strip()
    lines = text.strip().splitlines()
    end = _end_of_account(lines)
    answers = [f"{line}\n" for line in lines[end:]]
    sys.stdin = io.StringIO("".join(answers))
    return "\n".join(lines[:end])


def _end_of_account(lines: Sequence[str]) -> int:
    """Returns the number of lines that describe the account.

    It is at least 1, unless there is no line. On standard input, answers to later
    prompts may follow these lines.
    """
    end = len(lines)
    while end > 1 and _ANSWER.fullmatch(lines[end - 1].strip()):
        end -= 1
    return end


def choose_account(
    text: str, network: Network, script: str | None, choose: str | None, asks: bool
) -> tuple[WalletText, WalletAccount]:
    """Parses a wallet's text. Returns its contents and the account that the user chooses.

    - `script`: the script type for keys whose script type the text does not give; None if
      the user has named none.
    - `choose`: the name of the account, if the text has several. If it is None, lists the
      accounts, and prompts the user if `asks` is True.

    Raises CommandError if the text has no account, or if no account is chosen.
    """
    wallet_text = read_wallet_text(text, network, script)
    if choose is None and len(wallet_text.accounts) > 1:
        _list_accounts(wallet_text, network)
        if not asks:
            names = ", ".join(account.name for account in wallet_text.accounts)
            raise CommandError(
                f"the text holds {len(wallet_text.accounts)} accounts: say --choose with one of"
                f" {names}"
            )
        choose = click.prompt("Which of them (name)", err=True)
    return wallet_text, wallet_text.choose(choose)


def _list_accounts(wallet_text: WalletText, network: Network) -> None:
    say("The text holds several accounts; each with its first address:")
    for account in wallet_text.accounts:
        (address,) = account.first_addresses(network, 1)
        say(f"  {account.name}: {account.description}: {address}")


def show_reading(wallet_text: WalletText, account: WalletAccount) -> None:
    """Prints how the text was understood, and which of its contents were ignored."""
    say(f"Read as {account.description}.")
    for reason in wallet_text.left_out:
        say(f"Left out: {reason}.")
    for note in account.notes:
        say(f"Note: {note}")
