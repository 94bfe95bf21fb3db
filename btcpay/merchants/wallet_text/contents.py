"""The contents of a wallet's text: accounts, and the reasons why others were left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.merchants.account import network_kind
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network


class TextProblem(StrEnum):
    """The problem with a text. Pages describe it in the visitor's language."""

    REAL_KEYS = "real_keys"  # keys of mainnet, but the shop is on a test network
    TEST_KEYS = "test_keys"  # keys of a test network, but the shop is on mainnet
    ONE_OF_SEVERAL = "one_of_several"  # keys of other signers are missing
    DAMAGED = "damaged"  # a part of it is missing or changed
    ANIMATED_CODE = "animated_code"  # one picture of several
    TRANSACTION = "transaction"
    ADDRESS = "address"
    ENCRYPTED = "encrypted"
    DATABASE = "database"  # the wallet's own file
    OTHER_COIN = "other_coin"
    TOO_LONG = "too_long"
    NO_ACCOUNT = "no_account"  # nothing in it is known
    OTHER = "other"  # described only by the error's message, in English


class TextRefused(CommandError):
    """The text is damaged, or has no account that can be used.

    The message says why. For a known problem, it also names the text to export instead.
    """

    def __init__(self, message: str, problem: TextProblem = TextProblem.OTHER) -> None:
        super().__init__(message)
        self.problem = problem


class Candidate(NamedTuple):
    """An account in the text, or the change branch of an account.

    - `name`: the account's name in the file, or "".
    - `is_assumed`: True if nothing in the text gives the script type.
    - `is_internal`: True if the file says that the addresses are for change.
    - `has_checksum`: True if a checksum covers the whole descriptor.
    - `is_lone`: True if the text gives the account by an extended public key alone,
      without a descriptor.
    - `is_wanted`: True if `is_lone` is True and the person has named a script type.
    """

    descriptor: Descriptor
    name: str = ""
    is_assumed: bool = False
    is_internal: bool = False
    has_checksum: bool = False
    is_lone: bool = False
    is_wanted: bool = False


@dataclass
class Contents:
    """The accounts of a text for this network, collected one by one.

    - `script_type`: the script type that the person has named; None if the person has
      named none. It is used for keys whose script type the text does not give.
    - `reasons`: each reason why something was left out, with its TextProblem.
    """

    network: Network
    script_type: str | None
    candidates: list[Candidate] = field(default_factory=list)
    reasons: dict[str, TextProblem] = field(default_factory=dict)

    def take(self, candidate: Candidate) -> None:
        """Adds an account.

        If the account is for another network, adds only the reason why it is left out.
        """
        is_main = candidate.descriptor.is_main
        if is_main != self.network.main_keys:
            self.leave_out_other_network(is_main, "its keys are")
            return
        self.candidates.append(candidate)

    def leave_out(self, reason: str, problem: TextProblem = TextProblem.OTHER) -> None:
        """Adds a reason why something in the text is left out."""
        self.reasons.setdefault(reason, problem)

    def leave_out_other_network(self, is_main: bool, subject: str) -> None:
        """Adds the reason that keys are for another network, and are therefore left out.

        `is_main` is True if the keys are for mainnet. `subject` begins the sentence about
        the keys, for example "its keys are".
        """
        problem = TextProblem.TEST_KEYS
        if is_main:
            problem = TextProblem.REAL_KEYS
        self.leave_out(
            f"this is a key of another network: {subject} for {network_kind(is_main)}, but"
            f" BLOCKTILL_NETWORK is {self.network.name}",
            problem,
        )


_NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
)


def number_word(number: int) -> str:
    """Returns the number as a word, for example "three"; digits for ten and more."""
    if 0 <= number < len(_NUMBERS):
        return _NUMBERS[number]
    return str(number)


def refuse_missing_keys(count: int, present: Sequence[object]) -> None:
    """Raises TextRefused if the number of keys in the text is not `count`.

    `count` is the number of keys of the multisig, and `present` are the keys in the
    text.
    """
    if len(present) == count:
        return
    verb = "are"
    noun = "keys"
    if len(present) == 1:
        verb = "is"
        noun = "key"
    raise TextRefused(
        f"this is a multisig of {number_word(count)} of which {number_word(len(present))} {noun}"
        f" {verb} in the file: export an output descriptor, or the wallet's whole file",
        TextProblem.ONE_OF_SEVERAL,
    )
