"""docs/operators/going-live.md: what it names exists; tests/nightly/trips runs its commands."""

from tests.support.going_live import BLOCKS, RUN, TEXT, commands


def test_every_block_of_commands_says_how_it_is_tried():
    assert len(BLOCKS) == TEXT.count("```console\n") and len(RUN) > 9
    assert all(commands(name) for name in RUN)


def test_every_command_line_of_the_document_begins_with_a_prompt():
    """So that none is passed over."""
    for block in BLOCKS:
        for line in block["lines"].replace("\\\n", "").splitlines():
            assert line.startswith("$ "), line
