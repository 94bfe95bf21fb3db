"""Finds the accounts in a wallet's text, for `merchant add` and the first-run page.

1. The text is searched for secrets before anything else.
2. A damaged text is refused, and never completed by guessing.
3. Everything that is left out is reported.
"""

import re
from collections.abc import Sequence

from btcpay.merchants.secret import refuse_secret
from btcpay.merchants.wallet_text.accounts import WalletText, accounts_of
from btcpay.merchants.wallet_text.branches import receiving_accounts
from btcpay.merchants.wallet_text.clean import MAX_CHARS, clean_text, unescape_lines
from btcpay.merchants.wallet_text.contents import (
    Contents,
    TextProblem,
    TextRefused,
)
from btcpay.merchants.wallet_text.descriptors import (
    DescriptorText,
    find_descriptors,
    refuse_fragments,
    take_descriptor,
)
from btcpay.merchants.wallet_text.first_address import refuse_other_first_address
from btcpay.merchants.wallet_text.json_files import take_file
from btcpay.merchants.wallet_text.json_split import split_json
from btcpay.merchants.wallet_text.keys import KEY
from btcpay.merchants.wallet_text.lone_keys import keys_in_words, take_keys
from btcpay.merchants.wallet_text.multisig import (
    has_scheme,
    has_setup_file,
    has_signers,
    refuse_other_policy,
    take_scheme,
    take_setup_file,
)
from btcpay.merchants.wallet_text.wallets import (
    refuse_unreadable,
    wallet_of,
    what_to_export,
)
from btcpay.values.networks import Network

MAX_KEYS = 300  # in one text, which bounds the time


def read_wallet_text(
    text: str, network: Network, script_type: str | None = None
) -> WalletText:
    """Returns the accounts in a text that a wallet exports, or that a person pastes.

    `script_type` is used for a key if the text does not give the key's script type.
    Raises SecretShown if the text may contain a secret. Raises TextRefused, a
    CommandError, if the text is damaged or too long, has no account, or contradicts
    `script_type`. No error message repeats a secret.
    """
    _refuse_long(text)
    refuse_secret(text)
    plain = clean_text(text)
    _refuse_long(plain)
    refuse_secret(plain)
    if sum(1 for _ in KEY.finditer(plain)) > MAX_KEYS:
        raise TextRefused(
            f"the text has more than {MAX_KEYS} keys", TextProblem.TOO_LONG
        )
    contents = Contents(network, script_type)
    _take_all(contents, plain)
    receiving = receiving_accounts(contents)
    if not receiving:
        _refuse(contents, plain)
    refuse_other_first_address(receiving, plain, network)
    is_script_type_used = any(candidate.is_wanted for candidate in receiving)
    if script_type and not is_script_type_used:
        raise TextRefused(
            "a descriptor says its own kind of addresses: leave out --script"
        )
    accounts = accounts_of(receiving, _source(plain))
    return WalletText(tuple(accounts), tuple(contents.reasons))


def _refuse_long(text: str) -> None:
    if len(text) > MAX_CHARS:
        raise TextRefused(
            f"the text has more than {MAX_CHARS} characters", TextProblem.TOO_LONG
        )


def _take_all(contents: Contents, plain: str) -> None:
    """Adds each account in the text, from JSON, setup files, descriptors or keys."""
    trees, words_beside = split_json(plain)
    if not trees:
        _take_words(contents, unescape_lines(plain))
        return
    take_file(contents, trees)
    if KEY.search(words_beside) or find_descriptors(words_beside):
        raise TextRefused(
            "the text has keys both in a file and beside it: give one of them"
        )
    if re.search(r"\w", words_beside):
        contents.leave_out("the words beside the file")


def _take_words(contents: Contents, words: str) -> None:
    """Adds each account in a text without JSON. The first form that fits is used."""
    if has_setup_file(words) and has_signers(words):
        take_setup_file(contents, words)
        return
    descriptors = find_descriptors(words)
    if descriptors:
        _take_descriptors(contents, words, descriptors)
        refuse_other_policy(words, contents.candidates)
        return
    if has_setup_file(words):
        take_setup_file(contents, words)  # raises TextRefused, since keys are missing
        return
    if has_scheme(words):
        take_scheme(contents, words)
        return
    keys = keys_in_words(contents, words)
    take_keys(contents, keys)
    if keys and re.search(r"\w", KEY.sub("", words)):
        contents.leave_out("the words beside the key")


def _take_descriptors(
    contents: Contents,
    words: str,
    descriptors: Sequence[DescriptorText],
) -> None:
    """Adds the accounts of the descriptors, and reports what else is in the text."""
    others = words
    for descriptor in descriptors:
        take_descriptor(contents, descriptor)
        others = others.replace(words[descriptor.start : descriptor.end], " ; ")
    refuse_fragments(KEY.sub(" ; ", others))
    if KEY.search(others):
        contents.leave_out("a key beside the descriptor")
    elif re.search(r"\w", others):
        contents.leave_out("the words beside the descriptor")


def _source(plain: str) -> str:
    """Returns where the text comes from, for example "from Sparrow's file"."""
    wallet = wallet_of(plain)
    if wallet is not None:
        return f"from {wallet.text_name}"
    if "{" in plain or has_setup_file(plain):
        return "from a wallet's file"
    if "(" in plain:
        return "from a descriptor"
    return "from a key"


def _refuse(contents: Contents, plain: str) -> None:
    """Raises TextRefused with the reason why the text has no account."""
    if contents.reasons:
        reason, problem = next(iter(contents.reasons.items()))
        raise TextRefused(reason, problem)
    refuse_unreadable(plain)
    raise TextRefused(
        "this is not an extended key, and no descriptor or wallet's file that is read here: check"
        f" that all of it was copied, or {what_to_export(plain)}",
        TextProblem.NO_ACCOUNT,
    )
