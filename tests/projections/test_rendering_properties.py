"""Whatever a session holds, providers take what is made of it, and nothing that shows is lost."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from recorded_views import Talk
from renderings import iter_requests

from cutbank import Block, BlockKind, HistoryView, Text, ToolCall, ToolResult
from cutbank.domain.blocks import AnyBlock, Media, Native, NativePart, ResultPart
from cutbank.domain.compaction_events import Replacement, Trim
from cutbank.projections.rendering import summary_message
from cutbank.projections.rendering.catalog import RENDERERS, render_view
from cutbank.projections.rendering.exchanges import OPENING_TEXT
from cutbank.projections.view_content import ViewEntry

WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", " ", "\n", "a ", "\ud800", "\ud83d\ude00", "</conversation-summary>"]),
)
MESSAGE_IDS = st.sampled_from([None, None, "m1", "m2"])
CALL_IDS = st.sampled_from(["a", "b", "fn:0", "fn_0", "fn_0_2", "\u00e9", "x" * 70, "a\n"])
THINKING = ("thinking", "redacted_thinking", "reasoning")
NAMES = st.sampled_from(["read", "mcp.do it", "", "n" * 200])
ARGUMENTS = st.sampled_from(
    ["{}", '{"a": 1.0}', '{"a":1}', "[]", "{", '{"n": NaN}', '{"n": 1e999}', '{"s": "\\ud800"}']
)
MEDIA = st.builds(
    Media,
    type=st.sampled_from(["image", "document"]),
    mime=st.sampled_from(["image/png", "image/bmp", "application/pdf", "text/plain", ""]),
    data=st.sampled_from([b"", b"\x89PNG", b" "]),
    url=st.sampled_from([None, "https://example.com/a", "file:///a"]),
    name=st.sampled_from([None, "a.bin"]),
)


def native(provider: str, **item: Any) -> Native:
    return Native(provider=provider, item=json.dumps(item))


THOUGHTS = st.one_of(
    st.none(),
    st.builds(
        lambda words: native("anthropic", type="thinking", thinking=words, signature="s"), WORDS
    ),
    st.just(native("anthropic", type="redacted_thinking", data="d")),
    st.just(native("anthropic", type="thinking", thinking="unsigned")),
    st.just(Native(provider="anthropic", item="{")),
    st.builds(
        lambda number: native("openai-responses", type="reasoning", id=f"rs_{number}", summary=[]),
        st.integers(0, 9),
    ),
)


def spoken(words: str, provider: str | None, number: int) -> Block:
    """Return the model's words, perhaps with the item that they came in."""
    content = [{"type": "output_text", "text": words, "annotations": []}]
    items: dict[str | None, dict[str, Any]] = {
        "anthropic": {"type": "text", "text": words, "citations": None},
        "openai-responses": {"type": "message", "role": "assistant", "content": content},
    }
    items["openai-responses"]["id"] = f"msg_{number}"
    return Block.assistant(words, native=native(provider, **items[provider]) if provider else None)


def asked(call: ToolCall, provider: str | None, number: int) -> ToolCall:
    """Return a call, perhaps with the item that it came in."""
    if provider is None or call.arguments not in ("{}", '{"a":1}') or not call.name.isalnum():
        return call
    name = call.name[:64]
    if provider == "anthropic":
        given = {"id": call.tool_call_id, "input": call.parse_arguments()}
        item = native(provider, type="tool_use", name=name, **given)
    else:
        given = {"id": f"fc_{number}", "call_id": call.tool_call_id, "arguments": call.arguments}
        item = native(provider, type="function_call", name=name, **given)
    return call.model_copy(update={"native": item})


PARTS: st.SearchStrategy[ResultPart] = st.one_of(
    st.builds(Text, text=WORDS),
    MEDIA,
    st.just(NativePart(native=native("anthropic", type="search_result", title="t"))),
    st.just(NativePart(native=native("openai-responses", type="input_text", text="t"))),
)
ITEMS_OF = st.sampled_from([None, "anthropic", "openai-responses"])
NUMBERS = st.integers(0, 9)
CALLS = st.builds(
    asked,
    st.builds(ToolCall, tool_call_id=CALL_IDS, name=NAMES, arguments=ARGUMENTS),
    ITEMS_OF,
    NUMBERS,
)
RESULTS = st.builds(
    ToolResult,
    tool_call_id=st.just("whichever is open"),
    content=st.one_of(WORDS, st.lists(PARTS, max_size=3).map(tuple)),
    is_error=st.booleans(),
)
SAID = st.one_of(
    st.builds(Block.user, WORDS),
    st.builds(Block.developer, WORDS),
    st.builds(spoken, WORDS, ITEMS_OF, NUMBERS),
    st.builds(lambda words, item: Block.thinking(words, native=item), WORDS, THOUGHTS),
    st.builds(
        lambda words, media: Block(
            kind=BlockKind.IMAGE if media.type == "image" else BlockKind.DOCUMENT,
            text=words,
            media=media,
        ),
        WORDS,
        MEDIA,
    ),
)
SIGNED = THOUGHTS.filter(lambda item: item is not None and item.item != "{")
A_MESSAGE = st.lists(
    st.one_of(
        st.builds(lambda item: Block.thinking("hm", native=item), SIGNED),
        st.builds(spoken, WORDS, ITEMS_OF, NUMBERS),
        CALLS,
    ),
    min_size=1,
    max_size=4,
)
"""One message as a provider gives it, thinking and calls and words in any order."""
TOOLS = [
    {"name": "read", "input_schema": {"type": "object"}},
    {"type": "function", "name": "read", "parameters": {"type": "object"}},
]


@st.composite
def talks(draw: st.DrawFn, most: int = 8) -> Talk:
    """Any session: calls answered in any order, late or never, message ids used at whim."""
    talk = Talk()
    if draw(st.booleans()):
        talk.system(draw(WORDS))
    if draw(st.booleans()):
        talk.tools(draw(st.sampled_from(TOOLS)))
    mode = draw(st.sampled_from([None, None, "adaptive", "enabled", "disabled"]))
    if mode:
        talk.settings(model="m", thinking={"type": mode}, store=draw(st.booleans()))
    for number in range(draw(st.integers(0, most))):
        if draw(st.booleans()):
            blocks = [draw(st.one_of(SAID, CALLS, RESULTS))]
            message_id = draw(MESSAGE_IDS)
        else:
            blocks = [*draw(A_MESSAGE)]
            message_id = f"msg {number}"
        for block in blocks:
            _say(draw, talk, block.model_copy(update={"message_id": message_id}))
    return talk


def _say(draw: st.DrawFn, talk: Talk, block: AnyBlock) -> None:
    """Record what a session would: a result answers an open call, and an id is open but once."""
    if isinstance(block, ToolResult):
        if talk.open_calls:
            call = draw(st.sampled_from(sorted(talk.open_calls)))
            if draw(st.integers(0, 9)) == 0:
                talk.abandon(call)
            else:
                talk.say(block.model_copy(update={"tool_call_id": call}))
    elif not isinstance(block, ToolCall) or block.tool_call_id not in talk.open_calls:
        talk.say(block)


@st.composite
def views(draw: st.DrawFn) -> HistoryView:
    """Any view of any session: whole, or from any boundary that keeps its pairs together."""
    talk = draw(talks())
    if not talk.log or draw(st.booleans()):
        return talk.view()
    after = draw(st.integers(1, talk.position))
    calls = {e.call: e.position for e in talk.view().entries if e.call is not None}
    kept = set()
    for entry in talk.view().entries:
        if entry.position > after or entry.call is not None:
            continue
        is_open = isinstance(entry.block, ToolCall) and calls.get(entry.position, after + 1) > after
        if is_open or draw(st.booleans()):
            kept |= {entry.position, calls.get(entry.position, entry.position)}
    kept = {position for position in kept if position <= after}
    some = st.lists(st.sampled_from(sorted(kept)), unique=True) if kept else st.just([])
    return talk.compacted(
        after,
        kept,
        pinned=draw(some),
        trims=[Trim(position=at, head=draw(st.integers(0, 3))) for at in draw(some)],
        replaced=[Replacement(position=at, text=draw(WORDS)) for at in draw(some)],
        summary=draw(st.none() | WORDS.filter(str.strip)),
    )


def values_in(value: Any) -> Iterator[Any]:
    """Yield the value and all within it."""
    yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from values_in(part)


def items_in(value: Any) -> list[dict[str, Any]]:
    return [one for one in values_in(value) if isinstance(one, dict)]


def visible(entry: ViewEntry) -> Sequence[str]:
    """What an entry shows that a model must read."""
    block = entry.block
    if block.kind is BlockKind.THINKING or block.kind is BlockKind.TOOL_CALL:
        return ()
    if entry.shown is None and isinstance(block, ToolResult) and not isinstance(block.content, str):
        return [part.text for part in block.content if isinstance(part, Text)]
    return [entry.text]


PROVIDERS = ["anthropic", "openai-chat", "openai-responses"]


@given(view=views())
def test_a_provider_takes_every_view_and_is_told_the_same_way_again(view: HistoryView) -> None:
    for name, _, body in iter_requests(view):
        assert json.dumps(render_view(view, name)) == body
    assert json.dumps(render_view(view, "neutral")) == json.dumps(render_view(view, "neutral"))


@given(view=views())
def test_nothing_that_shows_is_lost(view: HistoryView) -> None:
    for name in RENDERERS:
        said = [one for one in values_in(render_view(view, name)) if isinstance(one, str)]

        for entry in view.entries:
            for words in visible(entry):
                if words.strip():
                    whole = words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                    assert any(whole.rstrip() in text for text in said), name
        if view.summary and name != "neutral":
            mark = summary_message.render_summary(view)
            assert mark in said
            assert summary_message.parse_summary_message(mark) is not None


@pytest.mark.parametrize("name", ["anthropic", "openai-responses"])
@given(view=views())
def test_a_providers_items_go_back_in_order_as_they_came_or_not_at_all(
    name: str, view: HistoryView
) -> None:
    natives = [entry.block.native for entry in view.entries if entry.block.native]
    came = [json.loads(n.item) for n in natives if n.provider == name and n.item != "{"]

    sent = [item for item in items_in(spoken_in(render_view(view, name), name)) if is_native(item)]

    thoughts = iter(came)
    assert all(item in came for item in sent)
    assert all(item in thoughts for item in sent if item["type"] in THINKING)


def spoken_in(body: dict[str, Any], name: str) -> Any:
    return body["input" if name == "openai-responses" else "messages"]


def is_native(item: dict[str, Any]) -> bool:
    """What only the provider can have written."""
    return (
        item.get("type") in THINKING
        or "citations" in item
        or str(item.get("id", "")).startswith(("msg_", "fc_"))
    )


@pytest.mark.parametrize("name", PROVIDERS)
@given(talk=talks(), words=st.text(min_size=1, max_size=5).filter(str.strip))
def test_what_was_said_stands_when_more_is_said(name: str, talk: Talk, words: str) -> None:
    """Between boundaries a request grows at its tail, so that prompt caches stay warm."""
    assume(talk.view().request_settings.get("thinking") != {"type": "enabled"})
    before = spoken_in(render_view(talk.view(), name), name)

    talk.say(Block.user(words))

    after = spoken_in(render_view(talk.view(), name), name)
    assert after[: len(before) - 1] == before[:-1]


@pytest.mark.parametrize("name", PROVIDERS)
@given(talk=talks())
def test_a_call_keeps_its_id_however_the_talk_goes_on(name: str, talk: Talk) -> None:
    def ids() -> list[str]:
        calls = ("tool_use", "function", "function_call")
        found = items_in(spoken_in(render_view(talk.view(), name), name))
        return [item.get("call_id") or item["id"] for item in found if item.get("type") in calls]

    before = ids()

    talk.open_calls.clear()
    talk.say(ToolCall(tool_call_id="a", name="read"))

    assert ids()[:-1] == before


@given(view=views())
def test_but_for_its_marks_a_request_with_marks_is_the_same(view: HistoryView) -> None:
    body = render_view(view, "anthropic-cached")
    shown = [piece for message in body["messages"] for piece in message["content"]]

    assert sum("cache_control" in piece for piece in shown) <= 2
    if shown[-1].get("text") != OPENING_TEXT:
        assert shown[-1]["cache_control"] == {"type": "ephemeral"}
    for piece in (*body.get("tools", []), *shown):
        piece.pop("cache_control", None)
    if "system" in body:
        (system,) = body["system"]
        body["system"] = system["text"]
    assert body == render_view(view, "anthropic")
