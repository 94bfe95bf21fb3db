"""Finds extended public keys that are in no descriptor, and the script type of each."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from btcpay.bitcoin.descriptor import parse
from btcpay.bitcoin.keys import InvalidDescriptor
from btcpay.merchants.account import DESCRIPTORS, ONE_OF_SEVERAL
from btcpay.merchants.wallet_text.branches import CHANGE_LEFT_OUT
from btcpay.merchants.wallet_text.contents import (
    Candidate,
    Contents,
    TextProblem,
    TextRefused,
)
from btcpay.merchants.wallet_text.descriptors import CUT
from btcpay.merchants.wallet_text.keys import (
    KEY,
    PURPOSES,
    PURPOSES_OF_SEVERAL,
    WalletKey,
    find_keys,
)

# The depth of BIP48's account keys, m/48'/0'/0'/2'.
_MULTISIG_DEPTH = 4
_PATH = re.compile(r"\s{0,5}((?:/[0-9<>;*]{1,30}['hH]?){1,10})")
_RECEIVING_PATHS = ("", "/0/*", "/<0;1>/*", "/**")
_CHANGE_PATH = "/1/*"
# The beginning of a line in a setup file of a multisig account, up to the signer's key.
_SIGNER = re.compile(r"(?:^|\n)\s{0,9}[0-9a-fA-F]{8}\s{0,9}:\s{0,9}$")
# Ledger Live's id of an account, up to its coin.
LEDGER_ID_START = r"(?:js|libcore|mock):[0-9]{1,2}:([a-z_0-9]{1,40})"
_LEDGER_BEFORE = re.compile(f"{LEDGER_ID_START}:$")
_LEDGER_AFTER = re.compile(r":([a-z_0-9]{0,30})")
LEDGER_MODES = {
    "": "p2pkh",
    "segwit": "p2sh-p2wpkh",
    "native_segwit": "p2wpkh",
    "taproot": "p2tr",
}
LEDGER_COINS = ("bitcoin", "bitcoin_testnet", "bitcoin_signet", "bitcoin_regtest")
OTHER_COIN = "this is an account of another coin than Bitcoin"
MASTER_KEY = "the master key itself, which is no account"
# The number of characters around a key that are searched for what the key is a part of.
_CONTEXT = 80
_ACCOUNT_PATH = re.compile(
    r"(?<![0-9a-zA-Z'])(?:m/)?([0-9]{2})['hH]/[0-9]{1,10}['hH]/[0-9]{1,10}['hH]"
)


class LoneKey(NamedTuple):
    """A key that is in no descriptor, with its script type and its name.

    `script_type` is None if the text does not give one. `name` is the key's name in the
    wallet's file; "" if it has no name there.
    """

    key: WalletKey
    script_type: str | None
    name: str = ""


def keys_in_words(contents: Contents, text: str) -> list[LoneKey]:
    """Returns the keys in a text that is no file and has no descriptors.

    Change branches are left out; `contents` gets the reason. Raises TextRefused if a key
    is part of a damaged descriptor or of a setup file, is of another coin, or has an
    unknown path after it.
    """
    keys = []
    script_type_in_words = _script_type_in_words(KEY.sub("", text))
    for match, key in find_keys(text):
        path, end = _path_at(text, match.end())
        before = text[max(0, match.start() - _CONTEXT) : match.start()]
        after = text[end : end + _CONTEXT]
        _refuse_part(before, path, after)
        if path == _CHANGE_PATH:
            contents.leave_out(CHANGE_LEFT_OUT)
            continue
        if path not in _RECEIVING_PATHS:
            raise TextRefused(
                "the path after the key is not read here: give the key alone, or the whole"
                " descriptor"
            )
        script_type = _ledger_script_type(before, after)
        if script_type is None and key.purpose is None:
            script_type = script_type_in_words
        keys.append(LoneKey(key, script_type))
    return keys


def _path_at(text: str, start: int) -> tuple[str, int]:
    """Returns the path that follows a key, and the index after its end.

    Returns "" and `start` if no path begins at `start`.
    """
    match = _PATH.match(text, start)
    if match is None:
        return "", start
    return match.group(1), match.end()


def _refuse_part(before: str, path: str, after: str) -> None:
    """Raises TextRefused if a key is part of a damaged descriptor or of a setup file.

    `before` and `after` are the texts around the key and the path that follows it.
    """
    is_in_function = before.endswith(("(", ",")) or after.startswith(")")
    if path and is_in_function:
        raise TextRefused(CUT, TextProblem.DAMAGED)
    if _SIGNER.search(before):
        raise TextRefused(
            "this is a part of a setup file for several signers: its line `Policy` is needed,"
            " and the keys of all signers; copy the whole file",
            TextProblem.ONE_OF_SEVERAL,
        )


def _ledger_script_type(before: str, after: str) -> str | None:
    """Returns the script type of a key within an account's id of Ledger Live.

    `before` and `after` are the texts around the key. Returns None if they are not
    those of such an id, or name no script type. Raises TextRefused for another coin.
    """
    ledger = _LEDGER_BEFORE.search(before)
    if ledger is None:
        return None
    if ledger.group(1) not in LEDGER_COINS:
        raise TextRefused(OTHER_COIN, TextProblem.OTHER_COIN)
    mode = _LEDGER_AFTER.match(after)
    if mode is None:
        return None
    return LEDGER_MODES.get(mode.group(1))


def _script_type_in_words(text: str) -> str | None:
    """Returns the script type that paths in the text mean, such as "Path: m/84'/0'/0'".

    Returns None if the text has no path, or if its paths contradict each other.
    """
    purposes = {int(match.group(1)) for match in _ACCOUNT_PATH.finditer(text)}
    if len(purposes) != 1:
        return None
    purpose = purposes.pop()
    if purpose in PURPOSES_OF_SEVERAL:
        return "p2wsh"
    return PURPOSES.get(purpose)


def take_keys(contents: Contents, keys: Iterable[LoneKey]) -> None:
    """Adds the accounts of the keys to the contents, or the reasons why they are left out.

    Raises TextRefused if what the text says about a key means two different script types,
    or another one than the person has named.
    """
    remaining = _without_repeated(list(keys))
    has_accounts = any(lone.key.depth > 0 for lone in remaining)
    for lone in remaining:
        if has_accounts and lone.key.depth == 0:
            contents.leave_out(MASTER_KEY)
        else:
            _take_key(contents, lone)


def _without_repeated(keys: Sequence[LoneKey]) -> list[LoneKey]:
    """Returns the keys without repetitions.

    If a key is there both with and without a script type, only the former is returned.
    """
    with_script_type = {lone.key.xpub for lone in keys if _script_type_of(lone)}
    remaining = []
    seen = set()
    for lone in keys:
        xpub = lone.key.xpub
        script_type = _script_type_of(lone)
        is_repeated = (xpub, script_type) in seen
        is_vague = script_type is None and xpub in with_script_type
        if is_repeated or is_vague:
            continue
        seen.add((xpub, script_type))
        remaining.append(lone)
    return remaining


def _script_type_of(lone: LoneKey) -> str | None:
    """Returns the script type that the key's prefix, its origin or the file gives.

    Returns None if none of them gives one. Raises TextRefused if they contradict each
    other and at least one of them is a script type of single-key accounts.
    """
    sources = [lone.key.version.script_type, lone.script_type]
    purpose = lone.key.purpose
    if purpose in PURPOSES_OF_SEVERAL:
        sources.append("p2wsh")
    elif purpose is not None:
        sources.append(PURPOSES.get(purpose))
    types = [script_type for script_type in sources if script_type]
    if not types:
        return None
    if all(script_type not in DESCRIPTORS for script_type in types):
        return types[0]
    if len(set(types)) > 1:
        raise TextRefused(
            f"what is said of a key contradicts itself ({' and '.join(sorted(set(types)))}):"
            " export the account's descriptor"
        )
    return types[0]


def _take_key(contents: Contents, lone: LoneKey) -> None:
    """Adds the account of one key, or the reason why it is left out."""
    key = lone.key
    script_type = _script_type_of(lone)
    wanted = contents.script_type
    if key.version.is_main != contents.network.main_keys:
        subject = f"this {key.version.prefix} is"
        contents.leave_out_other_network(key.version.is_main, subject)
        return
    is_assumed = script_type is None and wanted is None
    has_multisig_type = script_type is not None and script_type not in DESCRIPTORS
    if has_multisig_type or (is_assumed and _is_for_multisig(key)):
        contents.leave_out(ONE_OF_SEVERAL, TextProblem.ONE_OF_SEVERAL)
        return
    if script_type and wanted and script_type != wanted:
        raise TextRefused(
            f"a {key.version.prefix} means {script_type} here, but --script says {wanted}"
        )
    form = DESCRIPTORS[script_type or wanted or "p2wpkh"]
    try:
        descriptor = parse(form.format(key.expression))
    except InvalidDescriptor as error:  # the key's origin was not parsed before
        raise TextRefused(str(error)) from None
    contents.take(
        Candidate(
            descriptor,
            lone.name,
            is_assumed=is_assumed,
            is_lone=True,
            is_wanted=wanted is not None,
        )
    )


def _is_for_multisig(key: WalletKey) -> bool:
    """True if the key's depth and child number are those of a multisig account (BIP48)."""
    return key.depth == _MULTISIG_DEPTH and key.is_hardened
