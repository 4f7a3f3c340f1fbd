"""What a caller gives to a block is kept, or refused by name; nothing is dropped in silence."""

import json
from collections.abc import Callable

import pytest

from cutbank import Block, BlockKind, ToolCall, UnknownFieldError, Usage
from cutbank.domain.blocks import Media

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def test_an_unknown_field_is_refused_and_the_nearest_one_named() -> None:
    made: dict[str, Callable[[], object]] = {
        "Block has no field 'mesage_id'; did you mean 'message_id'?": lambda: Block.user(
            "hi",
            mesage_id="m",  # type: ignore[call-arg]
        ),
        "ToolCall has no field 'nmae'; did you mean 'name'?": lambda: ToolCall(
            tool_call_id="c",
            nmae="read",  # type: ignore[call-arg]
        ),
        "Usage has no field 'outputs'; did you mean 'output'?": lambda: Usage(
            outputs=40  # type: ignore[call-arg]
        ),
    }
    for says, make in made.items():
        with pytest.raises(UnknownFieldError) as refused:
            make()

        assert str(refused.value) == says
        assert isinstance(refused.value, TypeError)


def test_a_field_of_the_future_is_kept_where_a_log_is_read() -> None:
    read = Block.model_validate({"kind": "user", "text": "hi", "mood": "good"})

    assert read.model_dump()["mood"] == "good"


def test_thinking_carries_its_signature_as_the_provider_wants_it_back() -> None:
    thought = Block.thinking("Two files.", signature="c2ln")

    assert thought.native
    assert thought.native.provider == "anthropic"
    assert json.loads(thought.native.item) == {
        "type": "thinking",
        "thinking": "Two files.",
        "signature": "c2ln",
    }
    with pytest.raises(ValueError, match="a signature or a native item, not both"):
        Block.thinking("a", signature="s", native=thought.native)


def test_images_and_files_are_made_of_bytes_or_an_address() -> None:
    address = "https://example.org/a.png"
    pdf, csv = b"%PDF-1.7", b"a,b"
    made = [
        (Block.image(PNG, text="This one."), Media(type="image", mime="image/png", data=PNG)),
        (Block.image(address), Media(type="image", mime="image/*", url=address)),
        (
            Block.document(pdf, name="plan.pdf"),
            Media(type="document", mime="application/pdf", data=pdf, name="plan.pdf"),
        ),
        (Block.document(csv, mime="text/csv"), Media(type="document", mime="text/csv", data=csv)),
    ]

    assert [block.media for block, _ in made] == [media for _, media in made]
    assert [block.kind for block, _ in made] == [BlockKind.IMAGE] * 2 + [BlockKind.DOCUMENT] * 2
    with pytest.raises(ValueError, match="give mime="):
        Block.document(b"\0\1\2")
