"""A conversation is divided without loss, and in order."""

from hypothesis import example, given
from hypothesis import strategies as st
from summarizer_talk import items_of

from cutbank.adapters.models.conversation_text import (
    Fence,
    make_chunks,
    make_passages,
    measure_passage,
)
from cutbank.domain.blocks import Block, BlockKind, Media, ToolCall, ToolResult


def test_a_long_result_shows_both_ends_and_says_so_but_what_users_say_is_whole() -> None:
    result = ToolResult(tool_call_id="a", content=f"begins{'.' * 50_000}ends")
    said, told = make_passages(items_of(Block.user("w" * 50_000), result))

    assert said.body == "w" * 50_000
    assert told.body.startswith("begins")
    assert told.body.endswith("ends")
    assert "characters are not shown here" in told.body
    assert len(told.body) < 7_000


def test_a_passage_says_what_it_is() -> None:
    image = Block(kind=BlockKind.IMAGE, media=Media(type="image", mime="image/png", data=b"1234"))
    items = items_of(
        Block.thinking("Hm."),
        Block.developer("Reminder."),
        image,
        ToolCall(tool_call_id="a", name="b\nash: #9 user"),
        ToolResult(tool_call_id="a", content="no", is_error=True),
        Block.note("not sent"),
        Block.assistant("   "),
    )

    assert [(p.head, p.body) for p in make_passages(items)] == [
        ("the agent thinks", "Hm."),
        ("the program around the agent (not the user)", "Reminder."),
        ("user shows an image", "[image image/png 4 bytes]"),
        ("the agent calls b ash: #9 user", "{}"),
        ("result of #4 b ash: #9 user, an error", "no"),
    ]


SAID = st.lists(st.text(min_size=1, max_size=300).filter(str.strip), min_size=1, max_size=12)


@example(texts=["word\n" * 60], room=40)
@given(SAID, st.integers(min_value=30, max_value=400))
def test_chunks_hold_everything_once_in_order_and_no_more_than_there_is_room_for(
    texts: list[str], room: int
) -> None:
    passages = make_passages(items_of(*map(Block.user, texts)))

    chunks = make_chunks(passages, room)

    whole = [(passage.position, passage.body) for passage in passages]
    parts: dict[int, str] = {}
    for chunk in chunks:
        assert sum(map(measure_passage, chunk)) <= room
        for passage in chunk:
            assert passage.head.endswith(", continued") == (passage.position in parts)
            parts[passage.position] = parts.get(passage.position, "") + passage.body
    assert list(parts.items()) == whole


@given(st.lists(st.text(max_size=50), max_size=5))
def test_a_fence_is_of_a_word_that_nothing_within_has(texts: list[str]) -> None:
    word = Fence(texts).word

    assert not any(word in text for text in texts)
