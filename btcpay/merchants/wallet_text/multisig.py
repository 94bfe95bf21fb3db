"""Builds the descriptor of a multisig account from a file in another form.

There are three forms: the setup file that Coldcard, BlueWallet and other wallets write,
the derivation scheme of BTCPay Server, and wallet policies (BIP388).
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from btcpay.bitcoin.descriptor import Descriptor, parse
from btcpay.bitcoin.keys import InvalidDescriptor
from btcpay.merchants.wallet_text.contents import (
    Candidate,
    Contents,
    TextProblem,
    TextRefused,
    refuse_missing_keys,
)
from btcpay.merchants.wallet_text.keys import (
    KEY,
    WalletKey,
    find_keys,
    origin_of,
    read_key,
)
from btcpay.merchants.wallet_text.lone_keys import LoneKey, take_keys

T = TypeVar("T")
# By the names that files give to script types: the descriptor functions around the keys.
FORMS = {
    "p2wsh": "wsh({})",
    "p2sh-p2wsh": "sh(wsh({}))",
    "p2wsh-p2sh": "sh(wsh({}))",
    "p2sh": "sh({})",
}
SCRIPT_TYPES = {"p2wsh-p2sh": "p2sh-p2wsh"}
_POLICY = re.compile(
    r"(?im)^\W{0,9}policy\s*[:=]\s*([0-9]{1,2})\s*(?:of|/|-of-)\s*([0-9]{1,2})\b"
)
_FORMAT = re.compile(r"(?im)^\W{0,9}(?:format|script type)\s*[:=]\s*([a-z0-9-]{1,20})")
_NAME = re.compile(r"(?im)^\W{0,9}name\s*[:=]\s*(.{1,60})$")
_LINE = re.compile(
    r"(?im)^\s{0,9}(?:(?P<derivation>derivation)\s*[:=][^\S\n]*(?P<path>[^\n]{0,80})$"
    r"|(?P<fingerprint>[0-9a-f]{8})\s{0,9}:\s{0,9}(?=\[|[a-z]pub))"
)
_SCHEME_FLAG = re.compile(r"-\[([a-z0-9]{1,20})\]")
_SCHEME_THRESHOLD = re.compile(r"(?<![0-9])([0-9]{1,2})-of-$")
_SCHEME_FORMS = {"p2sh": "p2sh-p2wpkh", "legacy": "p2pkh", "taproot": "p2tr"}
_SCHEME_FORMS_OF_SEVERAL = {"p2sh": "p2sh-p2wsh", "legacy": "p2sh"}
_POLICY_KEY = re.compile(r"@([0-9]{1,2})")


def take_multisig(
    contents: Contents,
    script_type: str,
    threshold: int,
    keys: Sequence[WalletKey],
    name: str = "",
    function: str = "sortedmulti",
) -> None:
    """Adds a multisig account to the contents.

    If its keys belong to another network, adds only that fact (see `Contents.take`).
    `threshold` is the number of keys that must sign. `function` is the descriptor's
    function for the keys: sortedmulti or multi. Raises TextRefused if the script type is
    not one of FORMS, if a key's prefix means another script type, or if the keys make no
    valid descriptor.
    """
    script_type = SCRIPT_TYPES.get(script_type, script_type)
    if script_type not in FORMS:
        raise TextRefused(
            f"the file is of several signers, but its keys mean {script_type}: export an output"
            " descriptor"
        )
    for key in keys:
        if key.version.script_type not in (None, script_type):
            raise TextRefused(
                f"the file says {script_type}, but a {key.version.prefix} means"
                f" {key.version.script_type}: export an output descriptor"
            )
    expressions = ",".join(f"{key.expression}/0/*" for key in keys)
    inner = f"{function}({threshold},{expressions})"
    contents.take(Candidate(_parse(FORMS[script_type].format(inner)), name))


def _parse(text: str) -> Descriptor:
    try:
        return parse(text)
    except InvalidDescriptor as error:
        raise TextRefused(str(error)) from None


def has_setup_file(text: str) -> bool:
    """True if the text has the line `Policy` of a setup file."""
    return _POLICY.search(text) is not None


def has_signers(text: str) -> bool:
    """True if the text has a line with a signer's key, as in a setup file.

    Raises TextRefused if such a key is damaged.
    """
    return bool(_keys_of_setup_file(text))


def refuse_other_policy(text: str, candidates: Sequence[Candidate]) -> None:
    """Raises TextRefused if the line `Policy` contradicts the descriptors in the text."""
    policies = {(int(match[1]), int(match[2])) for match in _POLICY.finditer(text)}
    for candidate in candidates:
        descriptor = candidate.descriptor
        policy = (descriptor.threshold, len(descriptor.keys))
        has_other_policy = bool(policies - {policy})
        if descriptor.is_multi and has_other_policy:
            raise TextRefused(
                "the line `Policy` contradicts the descriptor: copy all of the file, and"
                " nothing of another one",
                TextProblem.DAMAGED,
            )


def take_setup_file(contents: Contents, text: str) -> None:
    """Adds the account of a setup file such as BlueWallet's.

    Raises TextRefused if a line is missing, unknown, or contradicts another line.
    """
    policies = {match.groups() for match in _POLICY.finditer(text)}
    policy = _only(policies, "Policy")
    threshold, count = map(int, policy)
    keys = _keys_of_setup_file(text)
    refuse_missing_keys(count, keys)
    xpubs_in_text = {key.xpub for _, key in find_keys(text)}
    xpubs_of_signers = {key.xpub for key in keys}
    if xpubs_in_text != xpubs_of_signers:
        contents.leave_out("a key that is no signer's")
    script_type = _format_of_setup_file(text, keys)
    name = ""
    name_line = _NAME.search(text)
    if name_line:
        name = name_line.group(1).strip()
    take_multisig(contents, script_type, threshold, keys, name=name)


def _format_of_setup_file(text: str, keys: Sequence[WalletKey]) -> str:
    """Returns the script type, from the line `Format`, else from the keys' prefixes.

    Raises TextRefused if it is missing, unknown or ambiguous.
    """
    formats = {match.group(1).lower() for match in _FORMAT.finditer(text)}
    if not formats:
        formats = {key.version.script_type or "" for key in keys}
    script_type = _only(formats, "Format")
    if script_type not in FORMS:
        raise TextRefused(
            "the line `Format` of the file is none of P2WSH, P2SH-P2WSH, P2SH: export an output"
            " descriptor"
        )
    return script_type


def _only(values: set[T], line: str) -> T:
    """Returns the only value of this line. Raises TextRefused if there are none or several."""
    if len(values) != 1:
        raise TextRefused(
            f"the line `{line}` of the file is missing, or is there twice with different values:"
            " copy the whole file",
            TextProblem.DAMAGED,
        )
    return values.pop()


def _keys_of_setup_file(text: str) -> list[WalletKey]:
    """Returns the keys of the signers, each once, with their origins."""
    keys: dict[str, WalletKey] = {}
    path = ""
    for line in _LINE.finditer(text):
        if line["derivation"]:
            path = line["path"]
            continue
        match = KEY.match(text, line.end())
        if match is None:
            continue
        key = read_key(match["key"], match["origin"] or "")
        if not key.origin:
            key = key._replace(origin=origin_of(line["fingerprint"], path))
        keys.setdefault(key.xpub, key)
    return list(keys.values())


def has_scheme(text: str) -> bool:
    """True if the text contains a derivation scheme of BTCPay Server, such as xpub...-[p2sh]."""
    for match in KEY.finditer(text):
        # 8 characters are enough for the threshold before the key, such as "15-of-".
        before = text[max(0, match.start() - 8) : match.start()]
        if _SCHEME_FLAG.match(text, match.end()) or _SCHEME_THRESHOLD.search(before):
            return True
    return False


def take_scheme(contents: Contents, text: str, origins: Sequence[str] = ()) -> None:
    """Adds the account of BTCPay Server's derivation scheme, such as xpub...-[p2sh].

    The text must contain a key. `origins` are the origins that the file gives for the
    keys, in the order of the keys. Raises TextRefused if a key is damaged, or if the
    scheme is unknown.
    """
    matches = list(KEY.finditer(text))
    keys = [read_key(match["key"], match["origin"] or "") for match in matches]
    for index, origin in enumerate(origins[: len(keys)]):
        keys[index] = keys[index]._replace(origin=origin)
    before_keys = text[: matches[0].start()]
    threshold = _SCHEME_THRESHOLD.search(before_keys)
    flags = {match.group(1) for match in _SCHEME_FLAG.finditer(text, matches[-1].end())}
    if threshold is None:
        _take_single_scheme(contents, keys, flags)
        return
    texts_between_keys = {
        text[left.end() : right.start()] for left, right in pairwise(matches)
    }
    if texts_between_keys - {"-"}:
        raise TextRefused(_SCHEME_UNKNOWN)
    function = "sortedmulti"
    if "keeporder" in flags:
        function = "multi"
    script_type = _script_type_of_several(flags - {"keeporder"})
    take_multisig(
        contents, script_type, int(threshold.group(1)), keys, function=function
    )


def _script_type_of_several(flags: set[str]) -> str:
    """Returns the script type that a multisig scheme's flags mean; p2wsh without a flag.

    Raises TextRefused for an unknown flag, or for several flags.
    """
    if not flags:
        return "p2wsh"
    if len(flags) > 1 or not flags <= _SCHEME_FORMS_OF_SEVERAL.keys():
        raise TextRefused(_SCHEME_UNKNOWN)
    (flag,) = flags
    return _SCHEME_FORMS_OF_SEVERAL[flag]


_SCHEME_UNKNOWN = (
    "this derivation scheme of BTCPay Server is not read here: give the descriptor of the wallet"
    " that signs"
)


def _take_single_scheme(
    contents: Contents, keys: Sequence[WalletKey], flags: set[str]
) -> None:
    """Adds the account of a scheme with one key. Without a flag, its prefix gives the type.

    Raises TextRefused for an unknown flag, several flags, or several keys.
    """
    if len(keys) != 1 or len(flags) > 1 or not flags <= _SCHEME_FORMS.keys():
        raise TextRefused(_SCHEME_UNKNOWN)
    (key,) = keys
    script_type = key.version.script_type or "p2wpkh"
    for flag in flags:  # at most one
        script_type = _SCHEME_FORMS[flag]
    take_keys(contents, [LoneKey(key, script_type)])


def fill_policy(template: str, keys: Sequence[str]) -> str:
    """Returns the descriptor of a wallet policy (BIP388) such as wsh(multi(2,@0/**,...)).

    `keys` replace @0, @1 and so on. Raises TextRefused if a key is missing.
    """
    indexes = {int(match.group(1)) for match in _POLICY_KEY.finditer(template)}
    if indexes != set(range(len(keys))):
        key_count = max(indexes, default=0) + 1
        refuse_missing_keys(key_count, keys)
    return _POLICY_KEY.sub(lambda match: keys[int(match.group(1))], template)
