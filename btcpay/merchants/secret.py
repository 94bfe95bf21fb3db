"""Finds private keys and seed words in a text before the text is parsed.

A text that may contain a secret is never shown or logged. In doubt, a text counts as a
secret.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from btcpay.bitcoin.keys import is_private, is_public
from btcpay.bitcoin.seed_words import holds_seed_words, holds_share, is_seed_qr
from btcpay.values.errors import CommandError

PRIVATE_KEY_SHOWN = (
    "this holds a secret, a private key: never give it to a server; export the account's PUBLIC"
    " key (xpub, zpub, ypub, tpub, vpub or upub) or the PUBLIC descriptor, and treat this key as"
    " seen by others: make a new wallet, and move all money there"
)
SEED_WORDS_SHOWN = (
    "this holds a secret: these look like the seed words of a wallet. This machine has now been"
    " shown them, and its shell keeps what is typed: whoever reads them can take the money. Make"
    " a new wallet, move all money there, and give the PUBLIC key of one of its accounts instead"
)
# The maximum length of a seed word with its number, in code points. The word has up to 16
# letters, each with up to four code points (Korean in NFD).
MAX_WORD = 70
_BETWEEN_WORDS = re.compile(r"[\s,;]+")
_SEED_WORD = re.compile(r"([0-9]{1,2}[.):])?[^\W\d_]{1,16}")
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
# Texts that look like a private key, even if a character is wrong: an extended private key of any
# prefix, a key in the format WIF, BIP38 or BIP93, and a UR (Uniform Resource) of a seed.
_LOOKS_PRIVATE = re.compile(
    rf"[A-Za-z]prv{_BASE58}{{16}}"
    rf"|(?<!{_BASE58})(?:[59]{_BASE58}{{50}}|[KLc]{_BASE58}{{51}}|6P{_BASE58}{{56}})(?!{_BASE58})"
    "|(?i:(?<![0-9a-z])ms1[0-9a-z]{45})"
    "|(?i:ur:(?:crypto-)?(?:seed|bip39|sskr)/)"
)
# A key in hex after a label such as "private key".
_LABELLED = re.compile(
    r"(?i)(?:seed|entropy|(?:private|secret)[ _-]?key)(?:[ _-]?hex)?\W{1,20}[0-9a-f]{32}"
)
# A run of Base58 characters. Line breaks may divide a key into several runs.
_PIECE = re.compile(rf"{_BASE58}+")
_MAX_PIECES = 4  # of one key
# The lengths of private keys in Base58, from a key in the format WIF to an extended key.
_SHORTEST_KEY = 51
_LONGEST_KEY = 113
_LONG_WORD = re.compile(rf"(?<!\w){_BASE58}{{51,112}}(?!\w)")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_OTHER_ESCAPE = re.compile(r"\\[bfnrt]")
# The maximum number of long words that are decoded, which bounds the time.
_MAX_LONG_WORDS = 400


class SecretShown(CommandError):
    """The text contains a private key or seed words.

    The message warns of this, and repeats nothing of the text.
    """


class SeedWordsShown(SecretShown):
    """The text contains seed words, which are the secret of a whole wallet."""


def refuse_secret(text: str) -> None:
    """Raises SecretShown if the text contains a private key, SeedWordsShown for seed words.

    Also finds secrets that are written with JSON's escapes.
    """
    # The text as written comes first, so that the same text gives the same error.
    for form in dict.fromkeys((text, _unescape(text))):
        if holds_private_key(form):
            raise SecretShown(PRIVATE_KEY_SHOWN)
        if _holds_seed(form):
            raise SeedWordsShown(SEED_WORDS_SHOWN)


def _holds_seed(text: str) -> bool:
    """True if the text holds seed words, as words or as a SeedQR's numbers."""
    if are_seed_words(text) or is_seed_qr(text):
        return True
    return holds_seed_words(text) or holds_share(text)


def _unescape(text: str) -> str:
    r"""Returns the text with JSON's escapes resolved, such as `\u0078` and `\n`."""
    plain = _UNICODE_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
    return _OTHER_ESCAPE.sub(" ", plain)


def holds_secret(text: str) -> bool:
    """True if the text holds a private key or seed words."""
    try:
        refuse_secret(text)
    except SecretShown:
        return True
    return False


def holds_private_key(text: str) -> bool:
    """True if the text contains a private key, or something that looks like one.

    Also finds a key that line breaks divide.
    """
    # One public key in two thousand contains `prv` by chance.
    unknown = _without_public_keys(text)
    if _LOOKS_PRIVATE.search(unknown) or _LABELLED.search(unknown):
        return True
    joined = re.sub(r"\s+", "", text)
    if _LOOKS_PRIVATE.search(_without_public_keys(joined)):
        return True
    long_words = _LONG_WORD.findall(text)[:_MAX_LONG_WORDS]
    words = [*long_words, *_broken_words(text), joined[:_LONGEST_KEY]]
    return any(is_private(word) for word in words)


def _without_public_keys(text: str) -> str:
    """Returns the text with a blank in place of each extended public key.

    Keys whose checksum is wrong are not replaced.
    """
    return _LONG_WORD.sub(_blank_for_public_key, text)


def _blank_for_public_key(match: re.Match[str]) -> str:
    """Returns a blank if the word is an extended public key, else the word."""
    word = match.group()
    if is_public(word):
        return " "
    return word


def _broken_words(text: str) -> list[str]:
    """Returns the texts that may be a private key divided by line breaks.

    Each text consists of two to _MAX_PIECES pieces of the text that follow each other,
    with only blanks between them.
    """
    words: list[str] = []
    pieces = list(_PIECE.finditer(text))
    for index in range(len(pieces)):
        words += _joined_pieces(text, pieces[index : index + _MAX_PIECES])
        if len(words) > _MAX_LONG_WORDS:
            break
    return words


def _joined_pieces(text: str, pieces: Sequence[re.Match[str]]) -> list[str]:
    """Returns the first two pieces joined, the first three joined, and so on.

    Stops at a piece that more than blanks separate from the piece before it, and at a
    text that is longer than any key. Leaves out texts that are shorter than any key.
    """
    words: list[str] = []
    joined = pieces[0].group()
    for before, piece in pairwise(pieces):
        has_only_blanks_between = text[before.end() : piece.start()].isspace()
        joined += piece.group()
        if not has_only_blanks_between or len(joined) > _LONGEST_KEY:
            break
        if len(joined) >= _SHORTEST_KEY:
            words.append(joined)
    return words


def are_seed_words(text: str) -> bool:
    """True if the whole text looks like a mnemonic (BIP39).

    The words may be in any language, and may be numbered.
    """
    words = [
        word for word in _BETWEEN_WORDS.split(text.strip()) if not _is_number(word)
    ]
    is_count_of_mnemonic = 12 <= len(words) <= 24
    if not is_count_of_mnemonic or max(map(len, words)) > MAX_WORD:
        return False
    composed = [unicodedata.normalize("NFC", word) for word in words]
    return all(_SEED_WORD.fullmatch(word) for word in composed)


def _is_number(word: str) -> bool:
    """True for the number before a seed word, for example "1", "1." or "1)"."""
    return re.fullmatch(r"[0-9]{1,2}[.):]?", word) is not None
