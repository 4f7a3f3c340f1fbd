"""Each reference system's estimate, by its own rules."""

from cutbank.domain.blocks import AnyBlock, Block, BlockKind, Media, Text, ToolCall, ToolResult
from cutbank.domain.counting.estimators import ESTIMATORS
from cutbank.domain.token_estimate import CharacterEstimate

PICTURE = Media(type="image", mime="image/png", data=b"x" * 100_000)
CALL = ToolCall(tool_call_id="c1", name="bash", arguments='{"a": 1}')
SEEN = ToolResult(tool_call_id="c1", content=(Text(text="12345"), PICTURE))
SAID = '12345\n"\\'


def test_a_block_is_as_large_as_the_original_program_has_it() -> None:
    picture, thought = Block(kind=BlockKind.IMAGE, media=PICTURE), Block.thinking("12345")
    rows: list[tuple[AnyBlock, dict[str, int]]] = [
        # Nine code points, eleven UTF-16 units, seventeen bytes.
        (
            Block.user("abcdefé🙂🙂"),
            {"kdcube": 2, "tunacode": 2, "klaude": 3, "pi": 3, "goat": 4 + 4, "qbit": 4},
        ),
        # The smallest message, and the empty one.
        (Block.user("a"), {"kdcube": 1}),
        (Block.user("  \n"), {"kdcube": 0}),
        (Block.user(""), {"klaude": 1, "goat": 4, "pi": 0}),
        # A call of `bash` with eight characters of arguments, and an id of two.
        (CALL, {"kdcube": 2, "tunacode": 3, "klaude": 3, "pi": 3, "goat": 4, "qbit": 3}),
        # Images: never their bytes.
        (SEEN, {"kdcube": 1, "tunacode": 3, "klaude": 302, "pi": 1_202, "goat": 5}),
        (picture, {"pi": 0, "qbit": 2}),
        (thought, {"klaude": 2, "goat": 4}),
        (Block.thinking("a" * 100), {"qbit": 3}),
        # A result as Rust shows it: `Text(Text { text: "..." })`, with what is escaped.
        (ToolResult(tool_call_id="c", content=SAID), {"qbit": 9}),
    ]

    for block, tokens in rows:
        assert {name: ESTIMATORS[name].count(block) for name in tokens} == tokens, block


def test_the_pieces_of_a_message_are_divided_together() -> None:
    """Rounding each piece would add up to another number."""
    pieces = [Block.assistant("12345"), Block.assistant("12345")]
    counted = {"tunacode": 2, "klaude": 3, "pi": 3, "goat": 2 + 4, "qbit": 3}

    assert {name: ESTIMATORS[name].count_message(pieces) for name in counted} == counted


def test_half_a_character_can_be_counted() -> None:
    assert all(estimator.count_text("\ud800" * 8) > 0 for estimator in ESTIMATORS.values())


def test_what_stands_beside_a_stored_block_is_a_counter_as_well() -> None:
    counter = CharacterEstimate()

    assert (counter.name, counter.count(Block.user("12345"))) == ("chars/4", 2)
    assert counter.count_text("") == 0
