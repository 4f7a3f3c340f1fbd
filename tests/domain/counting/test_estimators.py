"""Each reference system's estimate, by its own rules."""

import pytest

from cutbank.domain.blocks import AnyBlock, Block, Kind, Media, Text, ToolCall, ToolResult
from cutbank.domain.counting.counter import CharsPerToken
from cutbank.domain.counting.estimators import (
    ESTIMATORS,
    GOAT,
    KLAUDE,
    PI,
    QBIT,
    TUNACODE,
    Estimator,
)

PICTURE = Media(type="image", mime="image/png", data=b"x" * 100_000)
CALL = ToolCall(tool_call_id="c1", name="bash", arguments='{"a": 1}')
SEEN = ToolResult(tool_call_id="c1", content=(Text(text="12345"), PICTURE))
SAID = '12345\n"\\'


@pytest.mark.parametrize(
    ("name", "block", "tokens"),
    [
        # Nine code points, eleven UTF-16 units, seventeen bytes.
        ("kdcube", Block.user("abcdefé🙂🙂"), 2),
        ("tunacode", Block.user("abcdefé🙂🙂"), 2),
        ("klaude", Block.user("abcdefé🙂🙂"), 3),
        ("pi", Block.user("abcdefé🙂🙂"), 3),
        ("goat", Block.user("abcdefé🙂🙂"), 4 + 4),
        ("qbit", Block.user("abcdefé🙂🙂"), 4),
        # The smallest message, and the empty one.
        ("kdcube", Block.user("a"), 1),
        ("kdcube", Block.user("  \n"), 0),
        ("klaude", Block.user(""), 1),
        ("goat", Block.user(""), 4),
        ("pi", Block.user(""), 0),
        # A call of `bash` with eight characters of arguments, and an id of two.
        ("kdcube", CALL, 2),
        ("tunacode", CALL, 3),
        ("klaude", CALL, 3),
        ("pi", CALL, 3),
        ("goat", CALL, 4),
        ("qbit", CALL, 3),
        # Images: never their bytes.
        ("kdcube", SEEN, 1),
        ("tunacode", SEEN, 3),
        ("klaude", SEEN, 302),
        ("pi", SEEN, 1_202),
        ("goat", SEEN, 5),
        ("pi", Block(kind=Kind.IMAGE, media=PICTURE), 0),
        ("qbit", Block(kind=Kind.IMAGE, media=PICTURE), 2),
        # Thinking.
        ("klaude", Block.thinking("12345"), 2),
        ("goat", Block.thinking("12345"), 4),
        ("qbit", Block.thinking("a" * 100), 3),
        # A result as Rust shows it: `Text(Text { text: "..." })`, with what is escaped.
        ("qbit", ToolResult(tool_call_id="c", content=SAID), 9),
    ],
)
def test_a_block_is_as_large_as_the_original_program_has_it(
    name: str, block: AnyBlock, tokens: int
) -> None:
    assert ESTIMATORS[name].count(block) == tokens


@pytest.mark.parametrize(
    ("estimator", "tokens"),
    [(TUNACODE, 2), (KLAUDE, 3), (PI, 3), (GOAT, 2 + 4), (QBIT, 3)],
)
def test_the_pieces_of_a_message_are_divided_together(estimator: Estimator, tokens: int) -> None:
    """Rounding each piece would add up to another number."""
    pieces = [Block.assistant("12345"), Block.assistant("12345")]

    assert estimator.count_message(pieces) == tokens


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_half_a_character_can_be_counted(name: str) -> None:
    assert ESTIMATORS[name].count_text("\ud800" * 8) > 0


def test_what_stands_beside_a_stored_block_is_a_counter_as_well() -> None:
    counter = CharsPerToken()

    assert (counter.name, counter.count(Block.user("12345"))) == ("chars/4", 2)
    assert counter.count_text("") == 0
