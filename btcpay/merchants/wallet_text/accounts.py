"""Describes the accounts of a wallet's text to the person who chooses one of them."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from btcpay.bitcoin.descriptor import Descriptor, parse
from btcpay.merchants.account import DESCRIPTORS, derive
from btcpay.merchants.wallet_text.branches import CHANGE, RECEIVING
from btcpay.merchants.wallet_text.contents import Candidate
from btcpay.merchants.wallet_text.keys import (
    PURPOSES_WITH_COIN,
    purpose_of,
    read_key,
    script_type_of_path,
)
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network

ASSUMED_NOTE = (
    "The key does not say its kind of addresses: P2WPKH is assumed. If the addresses differ, name"
    " another kind."
)
CHANGE_NOTE = "/1/* is for change (BIP44): the wallet's own change would pay invoices."
# Coin types in paths (SLIP-44).
BITCOIN = "0'"
TEST_NETWORKS = "1'"
MAX_NAME = 40  # characters of an account's name


class WalletAccount(NamedTuple):
    """An account that the text contains.

    - `name`: a name that no other account of the text has.
    - `description`: the account's signers, script type and source, for example "2 of 3,
      P2WSH, from BlueWallet's file".
    - `is_assumed`: True if nothing in the text gives the script type.
    - `notes`: sentences to show before the person compares addresses.
    """

    name: str
    descriptor: Descriptor
    description: str
    is_assumed: bool
    notes: tuple[str, ...]

    def with_script_type(self, script_type: str) -> Self:
        """Returns the account with another script type, which a person has chosen.

        The account must have a single key. Call this only if `is_assumed` is True.
        """
        (key,) = self.descriptor.keys
        expression = key.text
        if key.origin:
            expression = f"[{key.origin}]{key.text}"
        descriptor = parse(DESCRIPTORS[script_type].format(expression))
        # Only the first occurrence: the source, after it, may contain the same letters.
        description = self.description.replace(
            self.descriptor.script_type.upper(), script_type.upper(), 1
        )
        notes = tuple(note for note in self.notes if note != ASSUMED_NOTE)
        return self._replace(
            descriptor=descriptor,
            description=description,
            is_assumed=False,
            notes=notes,
        )

    def first_addresses(
        self,
        network: Network,
        count: int,
        start: int = 0,
    ) -> list[str]:
        """Returns the `count` addresses that begin at the index `start`."""
        text = str(self.descriptor)
        indexes = range(start, start + count)
        return [derive(text, index, network) for index in indexes]


class WalletText(NamedTuple):
    """The accounts of a text; there is at least one.

    `left_out` names each thing in the text that is not used.
    """

    accounts: tuple[WalletAccount, ...]
    left_out: tuple[str, ...]

    def choose(self, name: str | None) -> WalletAccount:
        """Returns the account with this name, in upper or lower case.

        If `name` is None, returns the only account. Raises CommandError if no account
        has this name, or if `name` is None and there are several accounts.
        """
        names = ", ".join(account.name for account in self.accounts)
        if name is None:
            if len(self.accounts) == 1:
                return self.accounts[0]
            raise CommandError(
                f"the text holds {len(self.accounts)} accounts: choose one of {names}"
            )
        for account in self.accounts:
            if account.name.casefold() == name.strip().casefold():
                return account
        raise CommandError(f"the text has no account of that name: it has {names}")


def accounts_of(candidates: Sequence[Candidate], source: str) -> list[WalletAccount]:
    """Returns the accounts with names and descriptions.

    `source` says where the text is from, for example "from Sparrow's file".
    """
    names = _names(candidates)
    return [
        _account(candidate, name, source)
        for candidate, name in zip(candidates, names, strict=True)
    ]


def _names(candidates: Sequence[Candidate]) -> list[str]:
    """Returns a different name for each account: its name in the file, or its script type."""
    names: list[str] = []
    for candidate in candidates:
        printable = "".join(sign for sign in candidate.name if sign.isprintable())
        name_in_file = " ".join(printable.split())[:MAX_NAME]
        base = name_in_file or candidate.descriptor.script_type
        names.append(_free_name(base, names))
    return names


def _free_name(base: str, taken: Sequence[str]) -> str:
    """Returns `base`, or the first of `base`-2, `base`-3 ... that is not taken.

    Names that differ only in upper and lower case count as the same.
    """
    folded = {name.casefold() for name in taken}
    name = base
    number = 1
    while name.casefold() in folded:
        number += 1
        name = f"{base}-{number}"
    return name


def _account(candidate: Candidate, name: str, source: str) -> WalletAccount:
    descriptor = candidate.descriptor
    signers = "one key"
    if descriptor.is_multi:
        signers = f"{descriptor.threshold} of {len(descriptor.keys)}"
    return WalletAccount(
        name=name,
        descriptor=descriptor,
        description=f"{signers}, {descriptor.script_type.upper()}, {source}",
        is_assumed=candidate.is_assumed,
        notes=_notes(candidate),
    )


def _notes(candidate: Candidate) -> tuple[str, ...]:
    """Returns the sentences to show before a person compares addresses."""
    descriptor = candidate.descriptor
    notes = []
    if candidate.is_assumed:
        notes.append(ASSUMED_NOTE)
    # An extended public key has a checksum of its own, so a lone key needs no other.
    needs_checksum = descriptor.is_multi or not candidate.is_lone
    if needs_checksum and not candidate.has_checksum:
        notes.append(
            "There is no checksum: a character that was lost could go unnoticed. Compare also"
            " how many of the keys must sign."
        )
        notes += _contradictions(descriptor)
    notes += _unusual_origins(descriptor)
    notes += _unusual_steps(descriptor)
    if descriptor.form[-1] == "multi":
        notes.append("The keys keep their order (multi, not sortedmulti).")
    return tuple(notes)


def _unusual_steps(descriptor: Descriptor) -> list[str]:
    """Returns a note if the path after the keys is not that of receiving addresses."""
    paths = {key.steps for key in descriptor.keys}
    if any(path[-1:] == (CHANGE,) for path in paths):
        return [CHANGE_NOTE]
    if paths != {RECEIVING}:
        return ["The path after the keys is not the usual /0/*."]
    return []


def _unusual_origins(descriptor: Descriptor) -> list[str]:
    """Returns notes on keys whose origin is of another coin, network or depth."""
    notes = []
    for key in descriptor.keys:
        wallet_key = read_key(key.text)
        _fingerprint, *path = key.origin.split("/")
        coin = None
        if len(path) > 1 and purpose_of(path[0]) in PURPOSES_WITH_COIN:
            coin = path[1]
        if coin not in (None, BITCOIN, TEST_NETWORKS):
            notes.append("The path of a key is that of another coin than Bitcoin.")
        if coin == TEST_NETWORKS and descriptor.is_main:
            notes.append("The path of a key is that of a test network.")
        if wallet_key.depth > 0 and not wallet_key.is_hardened:
            notes.append(
                "A key is below the account's: its own number is not hardened."
            )
        if key.origin and len(path) != wallet_key.depth:
            notes.append(
                "The path before a key has not as many steps as the key itself."
            )
    return list(dict.fromkeys(notes))  # each once, in order


def _contradictions(descriptor: Descriptor) -> list[str]:
    """Returns a note if a key's path means another script type than the descriptor's."""
    for key in descriptor.keys:
        path = key.origin.partition("/")[2]
        script_type = script_type_of_path(path)
        if script_type and script_type != descriptor.script_type:
            return [
                f"The path of a key is that of {script_type}, and the descriptor is"
                f" {descriptor.script_type}: a part of it may be lost."
            ]
    return []
