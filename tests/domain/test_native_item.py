"""An item comes back as it was given, and what its blocks hold is in it once."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank import Block, InvalidSettingError, Item, Text, ToolCall, ToolResult
from cutbank.domain.blocks import AnyBlock, Native
from cutbank.domain.native_item import fill_item

LONG = 'a text that is long enough to be worth a cut, with "quotes", \\ and ä'
TEXTS = st.text(max_size=60) | st.sampled_from([LONG, LONG[:40], LONG * 3, "é" * 50, "aaaa" * 20])
ARGUMENTS = st.dictionaries(st.text(max_size=5), st.none() | st.floats(allow_nan=False) | TEXTS)
PNG = b"\x89PNG\r\n\x1a\n" + b"pixels" * 20


@st.composite
def items(draw: st.DrawFn) -> Item:
    """Items that hold texts of their blocks here and there, written in every way."""
    texts = draw(st.lists(TEXTS, min_size=1, max_size=4))
    arguments = draw(ARGUMENTS)
    native = Native(provider="p", item=json.dumps({"type": "thinking", "signature": texts[0]}))
    blocks: list[Any] = [Block.user(text) for text in texts]
    blocks += [
        ToolCall(tool_call_id="c", name="t", arguments=arguments),
        ToolResult(tool_call_id="c", content=tuple(Text(text=text) for text in texts)),
        Block.image(PNG),
        Block.thinking(texts[-1], native=native),
    ]
    blocks = draw(st.lists(st.sampled_from(blocks), min_size=1, max_size=8))
    whole = {
        "texts": draw(st.lists(st.sampled_from([*texts, "".join(texts)]), max_size=8)),
        "input": arguments,
        "again": json.dumps(arguments, ensure_ascii=False),
        "url": "data:image/png;base64," + b64encode(PNG).decode(),
        "thinking": json.loads(native.item),
    }
    keys = draw(st.permutations(list(whole)))
    tree = {key: whole[key] for key in keys}
    return Item(json.dumps(tree) if draw(st.booleans()) else tree, blocks)


@given(items())
def test_an_item_comes_back_character_for_character(item: Item) -> None:
    assert fill_item(item.cut, item.blocks) == item.text


def test_what_the_blocks_hold_is_cut_out() -> None:
    arguments = {"path": LONG, "lines": [1, 2]}
    native = Native(provider="p", item=json.dumps({"encrypted": "x" * 1_000}))
    blocks: list[AnyBlock] = [
        Block.assistant(LONG),
        ToolCall(tool_call_id="c", name="t", arguments=arguments),
        Block.image(PNG),
        Block.thinking("", native=native),
        ToolResult(tool_call_id="c", content=LONG * 1_000),
    ]
    item = Item(
        {
            "text": LONG,
            "input": arguments,
            "data": b64encode(PNG).decode(),
            "native": json.loads(native.item),
            "content": LONG * 1_000,
            "stdout": LONG * 1_000,
        },
        blocks,
    )

    assert item.cut.item == json.dumps(
        {"text": "", "input": 0, "data": "", "native": 0, "content": "", "stdout": ""}
    ).replace("0", "")


def test_equal_texts_of_two_blocks_are_told_apart() -> None:
    item = Item([LONG, LONG], [Block.user(LONG), Block.user(LONG)])

    shown = fill_item(item.cut, item.blocks, {1: "short"})

    assert shown is not None
    assert json.loads(shown) == [LONG, "short"]


def test_a_shortened_text_takes_the_place_of_the_whole() -> None:
    result = ToolResult(tool_call_id="c", content=LONG * 9)
    item = Item({"id": "c", "content": LONG * 9}, [result])

    shown = fill_item(item.cut, item.blocks, {0: 'the "ends"'})

    assert shown is not None
    assert json.loads(shown) == {"id": "c", "content": 'the "ends"'}


@pytest.mark.parametrize(
    "block",
    [
        ToolCall(tool_call_id="c", name="t", arguments={"path": LONG}),
        Block.image(PNG, text=LONG),
        ToolResult(tool_call_id="c", content=(Text(text=LONG), Text(text=LONG))),
        Block.user("too short to be cut out"),
    ],
    ids=["call", "image", "parts", "short"],
)
def test_a_text_that_cannot_stand_in_an_item_is_not_put_there(block: Any) -> None:
    item = Item([block.text, {"path": LONG}, b64encode(PNG).decode()], [block])

    assert fill_item(item.cut, item.blocks, {0: "hidden"}) is None


@pytest.mark.parametrize(
    ("tree", "blocks", "message"),
    [
        ("{", [Block.user("a")], "the item is not JSON: Expecting property name"),
        ({"at": b"bytes"}, [Block.user("a")], "the item is not JSON: Object of type bytes"),
        ({}, [], "an item needs at least one block"),
        (
            {},
            [Block.user("a", message_id="1"), Block.user("b", message_id="2")],
            "the blocks of one item need one message_id",
        ),
    ],
)
def test_a_bad_item_is_refused(tree: Any, blocks: list[Block], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        Item(tree, blocks)
