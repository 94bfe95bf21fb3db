"""Finds output descriptors in a text, in the spellings of wallets and people."""

import re
from typing import NamedTuple

from btcpay.bitcoin.descriptor import (
    MAX_CHARS,
    Descriptor,
    UnsupportedDescriptor,
    parse,
)
from btcpay.bitcoin.descriptor_checksum import has_valid_checksum
from btcpay.bitcoin.keys import InvalidDescriptor
from btcpay.merchants.wallet_text.contents import (
    Candidate,
    Contents,
    TextProblem,
    TextRefused,
)
from btcpay.merchants.wallet_text.keys import (
    BASE58,
    KEY,
    ORIGIN,
    find_keys,
)

# The functions of descriptors (BIP381 to 386), and further ones of Bitcoin Core.
FUNCTIONS = frozenset(
    {
        "pk", "pkh", "wpkh", "sh", "wsh", "tr", "rawtr", "combo", "addr", "raw",
        "multi", "sortedmulti", "multi_a", "sortedmulti_a",
    }
)  # fmt: skip
# A function's name and its opening bracket. Words before a bracket look the same.
_CALL = re.compile(
    r"(?<![A-Za-z0-9_])(?P<name>[A-Za-z_][A-Za-z_0-9]{0,20})(?P<blanks>\s{0,5})\("
)
_BRACKET = re.compile(r"[()]")
# A checksum. Line breaks may divide it, and it may be the end of a sentence.
_CHECKSUM = re.compile(r"#((?:\s{0,5}[a-z0-9]){8})(?=[.!?:)\]}]{0,3}(?:[\s\"',;<>]|$))")
# The text after a # that is no checksum, perhaps since a part of it is lost.
_OTHER_THAN_CHECKSUM = re.compile(r"#([^\s\"',;<>]*)")
_ORIGIN = re.compile(ORIGIN)
# The end of a descriptor, whose beginning may be lost.
DESCRIPTOR_END = re.compile(r"/\*\s{0,5}\)")
_FRAGMENT = re.compile(
    rf"{DESCRIPTOR_END.pattern}|{BASE58}{{40}}"
)  # the end, or most of a key
# The maximum number of functions in a text, which bounds the time.
MAX_CALLS = 500
# The path of BIP388 that means both the receiving and the change branch (as in BIP389).
BOTH_BRANCHES = "/**"
OLD_BRANCHES = "/{0,1}/*"  # Specter's, before BIP389
WRONG_CHECKSUM = (
    "its checksum is wrong: a character of the descriptor is wrong or missing; check that all of"
    " it was copied"
)
CUT = "a descriptor in it is cut: check that all of it was copied"


class DescriptorText(NamedTuple):
    """A descriptor in a text: text[start:end] is the descriptor with its checksum.

    `script` is the descriptor without blanks and without the checksum. `checksum` is
    None if the text has none.
    """

    start: int
    end: int
    script: str
    checksum: str | None


def find_descriptors(text: str) -> list[DescriptorText]:
    """Returns the descriptors in the text.

    Raises TextRefused if the text has too many brackets, if a descriptor is cut off, or
    if a key is in the brackets of a function that descriptors do not have.
    """
    descriptors: list[DescriptorText] = []
    position = 0
    for _ in range(MAX_CALLS):
        call = _CALL.search(text, position)
        if call is None:
            return descriptors
        is_descriptor = call["name"] in FUNCTIONS
        if call["blanks"] and not is_descriptor:
            position = call.end()  # words before a bracket, no function
            continue
        end = _closing_bracket(text, call.end())
        is_end_lost = is_descriptor and end is None
        # Such as `w` of `wpkh(`.
        is_start_lost = not is_descriptor and _has_key(text, call.end(), end)
        if is_end_lost or is_start_lost:
            raise TextRefused(CUT, TextProblem.DAMAGED)
        if end is None:
            return descriptors  # no key follows, so no descriptor is lost
        position = end + 1
        if is_descriptor:
            descriptor = _with_checksum(text, call.start(), end + 1)
            descriptors.append(descriptor)
            position = descriptor.end
    if _CALL.search(text, position):
        raise TextRefused(
            f"it has more than {MAX_CALLS} descriptors or brackets",
            TextProblem.TOO_LONG,
        )
    return descriptors


def _has_key(text: str, start: int, end: int | None) -> bool:
    """True if text[start:end] has a key; if `end` is None, the text from `start` on."""
    if end is None:
        end = len(text)
    return KEY.search(text, start, end) is not None


def _closing_bracket(text: str, start: int) -> int | None:
    """Returns the index of the bracket that closes the one before `start`; None if none does."""
    depth = 1
    limit = start + 2 * MAX_CHARS
    for bracket in _BRACKET.finditer(text, start, limit):
        if bracket.group() == "(":
            depth += 1
        else:
            depth -= 1
        if depth == 0:
            return bracket.start()
    return None


def _with_checksum(text: str, start: int, end: int) -> DescriptorText:
    """Returns the descriptor text[start:end], with the checksum if one follows it."""
    script = re.sub(r"\s+", "", text[start:end])
    match = _CHECKSUM.match(text, end)
    if match:
        checksum = re.sub(r"\s+", "", match.group(1))
        return DescriptorText(start, match.end(), script, checksum)
    match = _OTHER_THAN_CHECKSUM.match(text, end)
    if match:  # kept, so that the descriptor is refused
        return DescriptorText(start, match.end(), script, match.group(1))
    return DescriptorText(start, end, script, None)


def take_descriptor(
    contents: Contents,
    source: DescriptorText,
    name: str = "",
    is_internal: bool = False,
) -> None:
    """Adds the account of a descriptor to the contents, or the reason why it is left out.

    `name` is the account's name in the file, or "". `is_internal` is True if the file
    says that the addresses are for change. Raises TextRefused if the checksum is wrong,
    or if the descriptor is invalid and has no checksum.
    """
    has_checksum = source.checksum is not None
    if has_checksum and not _is_intact(source):
        raise TextRefused(WRONG_CHECKSUM, TextProblem.DAMAGED)
    try:
        descriptor = read_descriptor(source.script)
    except UnsupportedDescriptor as error:
        contents.leave_out(str(error))
        return
    except InvalidDescriptor as error:
        if not has_checksum:
            raise TextRefused(str(error)) from None
        contents.leave_out(str(error))
        return
    contents.take(
        Candidate(descriptor, name, is_internal=is_internal, has_checksum=has_checksum)
    )


def read_descriptor(script: str) -> Descriptor:
    """Parses a descriptor in any wallet's spelling. The text must not contain blanks.

    Raises InvalidDescriptor if the descriptor is invalid, or if a key's prefix (SLIP-132)
    means another script type than the descriptor's functions.
    """
    plain = _ORIGIN.sub(lambda origin: origin.group().replace("H", "h"), script)
    plain = plain.replace(BOTH_BRANCHES, "/<0;1>/*")
    plain = plain.replace(OLD_BRANCHES, "/<0;1>/*")
    slip132_keys = []
    for match, key in find_keys(plain):
        if key.version.script_type:
            slip132_keys.append((match["key"], key))
    for key_text, key in slip132_keys:
        plain = plain.replace(key_text, key.xpub)
    descriptor = parse(plain)
    for _, key in slip132_keys:
        if key.version.script_type != descriptor.script_type:
            raise InvalidDescriptor(
                f"a descriptor holds an xpub, not a {key.version.prefix}, which means"
                f" {key.version.script_type} and not {descriptor.script_type}"
            )
    return descriptor


def refuse_fragments(text: str) -> None:
    """Raises TextRefused if a text has the end of a descriptor, or most of a key.

    Remove whole descriptors and keys from the text before you call this function.
    """
    if _FRAGMENT.search(text):
        raise TextRefused(CUT, TextProblem.DAMAGED)


def _is_intact(source: DescriptorText) -> bool:
    """True if the checksum fits the descriptor in one of its usual spellings.

    Wallets compute the checksum with `'` or `h` for hardened steps, and with the
    branches written as in BIP388 or as in BIP389. The text may have another spelling
    than the one with which the checksum was computed.
    """
    as_written = source.script
    with_h = _with_mark(as_written, "h")
    with_quote = _with_mark(as_written, "'")
    for script in (as_written, with_h, with_quote):
        bip389 = script.replace(BOTH_BRANCHES, "/<0;1>/*")
        bip388 = script.replace("/<0;1>/*", BOTH_BRANCHES)
        for spelling in (script, bip389, bip388):
            if has_valid_checksum(f"{spelling}#{source.checksum}"):
                return True
    return False


def _with_mark(script: str, mark: str) -> str:
    """Returns the descriptor with `mark` for the hardened steps of its origins."""

    def replace(origin: re.Match[str]) -> str:
        return re.sub("[hH']", mark, origin.group())

    return _ORIGIN.sub(replace, script)
