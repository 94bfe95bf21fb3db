"""Separates the JSON values in a text from the words around them."""

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from btcpay.merchants.wallet_text.contents import TextProblem, TextRefused
from btcpay.merchants.wallet_text.descriptors import DescriptorText, find_descriptors

# Electrum appends its changes to its file, each as an object after a comma.
_ELECTRUM_CHANGES = re.compile(r'\s*,\s*\{"op"')
_CHANGED_KEYS = re.compile(r'"path"\s*:\s*"\\?/(?:keystore|wallet_type|x[0-9])')
_JSON_START = re.compile(r"[\[{]\s*[\[{\"]|\[\s*\]|\{\s*\}|[{}]")
MAX_DEPTH = 30  # of nested objects and lists; wallets' files have some five
FRAGMENT = (
    "there are brackets in it as in a wallet's file, but what is in them is no whole file (JSON):"
    " check that all of it was copied, or give the key or the descriptor alone"
)


class SplitText(NamedTuple):
    """The JSON values in a text, and the text without them."""

    trees: list[Any]
    words: str


def split_json(plain: str) -> SplitText:
    """Returns the JSON values in the text, and the text without them.

    Electrum appends changes to its file; they are left out. Raises TextRefused if such a
    change is about keys, or if a JSON value is incomplete, nested too deeply, or has two
    fields with the same name.
    """
    trees: list[Any] = []
    words = ""
    position = 0
    descriptors = _descriptors_outside(plain)
    while json_start := _JSON_START.search(plain, position):
        start = json_start.start()
        # A descriptor has braces too, in a key's branches.
        end_of_descriptor = _end_of_descriptor_at(start, descriptors)
        if end_of_descriptor is not None:
            words += plain[position:end_of_descriptor]
            position = end_of_descriptor
            continue
        words += plain[position:start]
        tree, position = _tree_at(plain, start)
        trees.append(tree)
        if _ELECTRUM_CHANGES.match(plain, position):
            _refuse_changed_keys(plain, position)
            return SplitText(trees, words)
    return SplitText(trees, words + plain[position:])


def _tree_at(plain: str, start: int) -> tuple[Any, int]:
    """Returns the JSON value that begins at `start`, and the index after its end.

    Raises TextRefused if the value is incomplete, nested too deeply, or has two fields
    with the same name.
    """
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_object)
    try:
        tree, end = decoder.raw_decode(plain, start)
    except (ValueError, RecursionError):
        raise TextRefused(FRAGMENT, TextProblem.DAMAGED) from None
    if _is_deep(tree):
        raise TextRefused(
            "the file has too many parts within each other: check that it is a wallet's"
        )
    return tree, end


def _end_of_descriptor_at(
    position: int, descriptors: Iterable[DescriptorText]
) -> int | None:
    """Returns the end of the descriptor around this position; None if none is there."""
    for descriptor in descriptors:
        if descriptor.start <= position < descriptor.end:
            return descriptor.end
    return None


def _refuse_changed_keys(plain: str, position: int) -> None:
    """Raises TextRefused if Electrum's changes, from this position on, are about keys."""
    if _CHANGED_KEYS.search(plain, position):
        raise TextRefused(
            "the file ends with changes of the wallet's keys, which are not read here:"
            " open it in Electrum, and give the master public key (Wallet, Information)"
        )


def _is_deep(tree: Any) -> bool:
    """True if objects and lists are nested deeper than MAX_DEPTH."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for value in level for child in _children(value)]
    return bool(level)


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object. Raises TextRefused if it has two fields with the same name."""
    names = dict(pairs)
    if len(names) < len(pairs):
        raise TextRefused(
            "a name is twice in the same part of the file: check that all of it was copied, once"
        )
    return names


def _descriptors_outside(plain: str) -> list[DescriptorText]:
    """Returns the descriptors in the text; none if it has no JSON, or begins with JSON."""
    start = _JSON_START.search(plain)
    if start is None or plain[: start.start()].strip() == "":
        return []
    return find_descriptors(plain)
