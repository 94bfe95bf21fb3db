"""Finds the seed words of a wallet in a text.

Sources: SLIP-39; SeedSigner's SeedQR format; BIP39 and its ten word lists
(bitcoin/bips, bip-0039), whose files are in the folder bip39 unchanged. Electrum's
seeds have the same words.
"""

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

# A mnemonic has 12 words or more. Two of them may have been lost when it was copied.
MIN_WORDS = 10
MAX_GAP = 2  # a wrong character may split a misspelt word in two
# Metal plates often have only the first four letters of each English word, which are unique.
PREFIX_LETTERS = 4
# A share has at least 20 words. Two of them may have been lost when it was copied.
MIN_SHARE_WORDS = 18
SHARE_LETTERS = (4, 8)
MIN_KNOWN_SHARE_WORDS = 5  # 58 % of SLIP-39's words are in BIP39's lists
# The numbers of 12 to 24 words, each of four digits and below 2048, as a SeedQR has them.
_SEED_QR = re.compile(r"(?:[01][0-9]{3}|20[0-3][0-9]|204[0-7]){12,24}")
_LISTS = Path(__file__).with_name("bip39")
_WORD = re.compile(r"[^\W\d_]+")
# The longest word has eight letters. A Korean one has more code points.
_MAX_LETTERS = 40


def holds_seed_words(text: str) -> bool:
    """True if the text contains at least MIN_WORDS words of BIP39's lists in a row.

    Numbers, punctuation and line breaks between the words are ignored. A label that is
    repeated before each word is ignored too. One word in the row may be misspelt.
    """
    words = [word for word in _WORD.findall(_fold(text)) if len(word) <= _MAX_LETTERS]
    if len(words) < MIN_WORDS:
        return False
    known = _known_words()
    labels = set()
    for word, count in Counter(words).items():
        is_repeated = count >= MIN_WORDS - 1
        if is_repeated and word not in known:
            labels.add(word)
    without_labels = [word for word in words if word not in labels]
    return _has_run([word in known for word in without_labels])


def is_seed_qr(text: str) -> bool:
    """True if the whole text is a SeedQR: the numbers of a mnemonic's words."""
    return _SEED_QR.fullmatch(text.strip()) is not None


def holds_share(text: str) -> bool:
    """True if the text contains a row of words that looks like a Shamir share (SLIP-39).

    A share has 20 or 33 words of SLIP-39's list, which have 4 to 8 letters. More than
    half of that list is also in BIP39's English list. Ordinary prose never has so many
    words of these lengths in a row.
    """
    known = _known_words()
    shortest, longest = SHARE_LETTERS
    latest_words = deque[str](maxlen=MIN_SHARE_WORDS)
    for word in _WORD.findall(_fold(text)):
        may_be_of_share = word.isascii() and shortest <= len(word) <= longest
        if not may_be_of_share:
            latest_words.clear()
            continue
        latest_words.append(word)
        if len(latest_words) == MIN_SHARE_WORDS:
            known_count = sum(word in known for word in latest_words)
            if known_count >= MIN_KNOWN_SHARE_WORDS:
                return True
    return False


def _has_run(are_known: Sequence[bool]) -> bool:
    """True if MIN_WORDS words are in a row and at most one of them is unknown.

    The unknown one must be between known ones. It counts as one word even if a wrong
    character has split it in two. `are_known` says for each word if it is known.
    """
    run = 0  # known words since the last gap of unknown ones
    run_before = 0  # known words before that gap; 0 if it is too long
    gap = 0  # unknown words since the last known one
    for is_known in are_known:
        if not is_known:
            gap += 1
            continue
        if gap > MAX_GAP:  # the row has ended, and a new one begins
            run_before = 0
            run = 0
        elif gap > 0:  # a misspelt word
            run_before = run
            run = 0
        gap = 0
        run += 1
        words_with_gap = 0
        if run_before:
            words_with_gap = run_before + 1 + run  # 1 is the misspelt word
        if run >= MIN_WORDS or words_with_gap >= MIN_WORDS:
            return True
    return False


@cache
def _known_words() -> frozenset[str]:
    """Returns the words of all lists, and the prefixes of the English ones."""
    words: set[str] = set()
    for file in _LISTS.glob("*.txt"):
        text = file.read_text(encoding="utf-8")
        words.update(_fold(text).split())
    english = (_LISTS / "english.txt").read_text(encoding="utf-8").split()
    words.update(word[:PREFIX_LETTERS] for word in english)
    return frozenset(words)


def _fold(text: str) -> str:
    """Returns the text in lower case and without accents.

    Each character is decomposed by itself: the time of a normalization of the whole
    text grows with the square of its marks.
    """
    if text.isascii():
        return text.lower()
    return "".join(map(_fold_character, text)).lower()


@lru_cache(maxsize=10_000)
def _fold_character(character: str) -> str:
    decomposed = unicodedata.normalize("NFKD", character)
    return "".join(sign for sign in decomposed if unicodedata.category(sign) != "Mn")
