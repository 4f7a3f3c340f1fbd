"""What a caller gives to a block is kept, or refused by name; nothing is dropped in silence."""

import json
from collections.abc import Callable

import pytest

from cutbank import Block, ToolCall
from cutbank.domain.blocks import Kind, Media, ToolResult
from cutbank.domain.errors import UnknownFieldError
from cutbank.domain.session_events import Usage

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: Block.user("hi", mesage_id="m"),  # type: ignore[call-arg]
            "Block has no field 'mesage_id'; did you mean 'message_id'?",
        ),
        (
            lambda: ToolCall(tool_call_id="c", nmae="read"),  # type: ignore[call-arg]
            "ToolCall has no field 'nmae'; did you mean 'name'?",
        ),
        (
            lambda: ToolResult(tool_call_id="c", content="x", error=True),  # type: ignore[call-arg]
            "ToolResult has no field 'error'; did you mean 'is_error'?",
        ),
        (
            lambda: Usage(outputs=40),  # type: ignore[call-arg]
            "Usage has no field 'outputs'; did you mean 'output'?",
        ),
    ],
    ids=["block", "call", "result", "usage"],
)
def test_an_unknown_field_is_refused_and_the_nearest_one_named(
    make: Callable[[], object], says: str
) -> None:
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


def test_thinking_takes_one_form_of_proof() -> None:
    native = Block.thinking("a", signature="s").native

    with pytest.raises(ValueError, match="a signature or a native item, not both"):
        Block.thinking("a", signature="s", native=native)


@pytest.mark.parametrize(
    ("block", "kind", "media"),
    [
        (
            Block.image(PNG, text="This one."),
            Kind.IMAGE,
            Media(type="image", mime="image/png", data=PNG),
        ),
        (
            Block.image("https://example.org/a.png"),
            Kind.IMAGE,
            Media(type="image", mime="image/*", url="https://example.org/a.png"),
        ),
        (
            Block.document(b"%PDF-1.7", name="plan.pdf"),
            Kind.DOCUMENT,
            Media(type="document", mime="application/pdf", data=b"%PDF-1.7", name="plan.pdf"),
        ),
        (
            Block.document(b"a,b", mime="text/csv"),
            Kind.DOCUMENT,
            Media(type="document", mime="text/csv", data=b"a,b"),
        ),
    ],
    ids=["image", "address", "PDF", "text"],
)
def test_images_and_files_are_made_of_bytes_or_an_address(
    block: Block, kind: Kind, media: Media
) -> None:
    assert block.kind is kind
    assert block.media == media


def test_bytes_whose_type_cannot_be_told_need_to_be_named() -> None:
    with pytest.raises(ValueError, match="give mime="):
        Block.document(b"\0\1\2")
