"""Texts of people: taken as their script writes them, but for what changes the text beside them."""

import pytest

from btcpay.values.texts import TextRefused, checked_line, line_of, lines_of, one_line

TAKEN = {
    "an ideographic blank": (
        "\u5c71\u7530\u3000\u592a\u90ce",
        "\u5c71\u7530 \u592a\u90ce",
    ),
    "a joiner that a Persian name needs": (
        "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",
        None,
    ),
    "a joiner of Sinhala": ("\u0dc1\u0dca\u200d\u0dbb\u0dd3", None),
    "a blank that does not break": ("Anna\u00a0M\u00fcller", "Anna M\u00fcller"),
    "a narrow one and a thin one": ("a\u202fb\u2009c", "a b c"),
    "blanks around": ("\u3000Ada\t", "Ada"),
    "a family of emoji": ("\U0001f468\u200d\U0001f469\u200d\U0001f467", None),
    "a heart with its variation": ("\u2764\ufe0f", None),
    "a flag of tags": ("\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e007f", None),
    "an emoji of Unicode 16": ("Ada \U0001fae9", None),
    "a sign that no table has yet": ("Ada \U0001faff", None),
    "right to left without marks": ("\u05e9\u05dc\u05d5\u05dd", None),
    "a note for the syllable's end": ("co\u00adop", None),
}
REFUSED = {
    "a null": ("a\0b", "U+0000"),
    "an escape": ("a\x1bb", "U+001B"),
    "a line break": ("a\nb", "U+000A"),
    "a next line": ("a\x85b", "U+0085"),
    "a line separator": ("a\u2028b", "U+2028"),
    "an override of direction": ("a\u202eb", "U+202E"),
    "an isolate": ("a\u2066b", "U+2066"),
    "a mark of direction": ("a\u200fb", "U+200F"),
    "half a sign": ("a\ud800b", "U+D800"),
}


@pytest.mark.parametrize("case", TAKEN)
def test_a_name_is_taken_as_its_script_writes_it(case):
    typed, line = TAKEN[case]
    assert line_of("name", typed, 60) == checked_line("name", typed) == (line or typed)
    assert one_line(typed, 60) == (line or typed)


@pytest.mark.parametrize("case", REFUSED)
def test_what_changes_the_text_beside_it_is_refused_by_name(case):
    typed, sign = REFUSED[case]
    with pytest.raises(TextRefused, match="cannot be seen") as refused:
        line_of("name", typed, 60)
    assert refused.value.sign == sign and sign in str(refused.value)
    assert one_line(typed, 60) == "a b"


@pytest.mark.parametrize(
    "typed", ["", " ", "\u3000", "\u200d\u200c", "\ufe0f", "\u3164", "\u2800 \uffa0"]
)
def test_what_shows_nothing_is_no_name(typed):
    assert line_of("name", typed, 60) == ""
    with pytest.raises(TextRefused, match="1 to 60"):
        checked_line("name", typed)


def test_a_line_has_its_bound_and_a_note_its_lines():
    assert (
        line_of("name", "a" * 60, 60) and lines_of("note", "a\r\n\u3000b", 60) == "a\nb"
    )
    for text in ("a" * 61, "a" * 10_000):
        with pytest.raises(TextRefused, match="more than 60"):
            line_of("name", text, 60)
        with pytest.raises(TextRefused, match="more than 60"):
            lines_of("note", text, 60)
    with pytest.raises(TextRefused, match=r"U\+2029"):
        lines_of("note", "a\nb\u2029c", 60)


def test_a_note_of_invisible_lines_is_empty():
    assert lines_of("note", "\u200b\n\u2800\n", 60) == ""
    assert lines_of("note", "\u200b\na\n\nb", 60) == "a\n\nb"
